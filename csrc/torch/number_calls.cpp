// Owns: see number_calls.h.
#include "torch/number_calls.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/python_variable.h>
#include <torch/csrc/utils/pybind.h>
#include <torch/csrc/utils/python_symnode.h>

#include <cmath>
#include <string_view>

#include "base/gil.h"
#include "torch/fake.h"
#include "torch/recorder.h"
#include "torch/sym_node.h"

namespace graphlift::torch_layer {
namespace {

using c10::IValue;

// torch hides a symbolic float that became a tensor behind nan; the tensor's Python object has it.
GraphFloatRef hidden_float(const at::Tensor& tensor) {
  if (!tensor.defined() || fake_storage(tensor) || !tensor.unsafeGetTensorImpl()->is_wrapped_number()) return nullptr;
  if (tensor.scalar_type() != c10::kDouble || !std::isnan(*tensor.const_data_ptr<double>())) return nullptr;
  WithGil gil;
  const Ref number = hidden_behind(tensor);
  if (!number) return nullptr;
  const pybind11::handle handle(number.get());
  return torch::is_symfloat(handle) ? graph_float(handle.cast<c10::SymFloat>()) : nullptr;
}

GraphFloatRef number_at(const IValue& value) {
  GraphFloatRef number = value.isSymFloat() ? graph_float(value.toSymFloat())
                         : value.isTensor() ? hidden_float(value.toTensor())
                                            : nullptr;
  if (!number && value.isSymFloat()) number = graph_float_of_sizes(value.toSymFloat());
  if (number && number->maybe_int) (void)number->fix();  // breaks
  return number;
}

// A number beside `like` computes in the precision that eager's kernels give it.
at::Tensor beside(const GraphFloatRef& number, const at::Tensor& like) {
  c10::ScalarType dtype = like.scalar_type();
  if (!c10::isFloatingType(dtype) && !c10::isComplexType(dtype)) dtype = c10::get_default_dtype_as_scalartype();
  if (c10::isReducedFloatingType(dtype) && like.dim() > 0) dtype = c10::kFloat;
  return number->tensor.to(dtype);
}

struct Arguments {
  c10::ArrayRef<IValue> all;
  const at::Tensor& self() const { return all[0].toTensor(); }
  at::Tensor tensor(size_t i) const {
    GraphFloatRef number = number_at(all[i]);
    if (number) return beside(number, self());
    return all[i].isTensor() ? all[i].toTensor() : c10::scalar_to_tensor(all[i].toScalar());
  }
};

// What is left to do with self: one call with tensors.
struct Last {
  enum class Kind { Add, Sub, Mul, Div, Lerp, Pow, Nothing } kind;
  at::Tensor operand, end;
};

// self + alpha * other
Last last_of_sum(const Arguments& args, Last::Kind kind) {
  at::Tensor other = args.tensor(1);
  if (number_at(args.all[2]))
    other = other.mul(args.tensor(2));
  else if (!args.all[2].toScalar().equal(1))
    other = other.mul(args.all[2].toScalar());
  return {kind, other, {}};
}
Last last_add(const Arguments& args) { return last_of_sum(args, Last::Kind::Add); }
Last last_sub(const Arguments& args) { return last_of_sum(args, Last::Kind::Sub); }
// number - self, which nothing writes in place
Last last_rsub(const Arguments& args) {
  at::Tensor taken = args.self();
  if (!args.all[2].toScalar().equal(1)) taken = taken.mul(args.all[2].toScalar());
  return {Last::Kind::Nothing, args.tensor(1).sub(taken), {}};
}
Last last_mul(const Arguments& args) { return {Last::Kind::Mul, args.tensor(1), {}}; }
Last last_div(const Arguments& args) { return {Last::Kind::Div, args.tensor(1), {}}; }
Last last_pow(const Arguments& args) { return {Last::Kind::Pow, args.tensor(1), {}}; }
Last last_lerp(const Arguments& args) { return {Last::Kind::Lerp, args.tensor(2), args.all[1].toTensor()}; }
// In the order of eager's kernels: (value * t1) / t2 and (value * t1) * t2.
Last last_addcdiv(const Arguments& args) {
  return {Last::Kind::Add, args.tensor(1).mul(args.tensor(3)).div(args.tensor(2)), {}};
}
Last last_addcmul(const Arguments& args) {
  return {Last::Kind::Add, args.tensor(1).mul(args.tensor(3)).mul(args.tensor(2)), {}};
}

at::Tensor finish(const at::Tensor& self, const Last& last, bool in_place) {
  switch (last.kind) {
    case Last::Kind::Add:
      return in_place ? self.add_(last.operand) : self.add(last.operand);
    case Last::Kind::Sub:
      return in_place ? self.sub_(last.operand) : self.sub(last.operand);
    case Last::Kind::Mul:
      return in_place ? self.mul_(last.operand) : self.mul(last.operand);
    case Last::Kind::Div:
      return in_place ? self.div_(last.operand) : self.div(last.operand);
    case Last::Kind::Pow:
      return in_place ? self.pow_(last.operand) : self.pow(last.operand);
    case Last::Kind::Nothing:
      return last.operand;
    case Last::Kind::Lerp:
      return in_place ? self.lerp_(last.end, last.operand) : self.lerp(last.end, last.operand);
  }
  return {};
}

struct NumberCallRow {
  std::string_view op;  // without the underscore of the form that writes
  std::string_view overload;
  Last (*last)(const Arguments&);
};
constexpr NumberCallRow kNumberCalls[] = {
    {"aten::add", "Tensor", last_add},   {"aten::add", "Scalar", last_add},        {"aten::sub", "Tensor", last_sub},
    {"aten::sub", "Scalar", last_sub},   {"aten::rsub", "Scalar", last_rsub},      {"aten::mul", "Scalar", last_mul},
    {"aten::div", "Scalar", last_div},   {"aten::pow", "Tensor_Scalar", last_pow}, {"aten::pow", "Scalar", last_pow},
    {"aten::lerp", "Scalar", last_lerp}, {"aten::addcdiv", "", last_addcdiv},      {"aten::addcmul", "", last_addcmul},
};

const NumberCallRow* find_row(const c10::FunctionSchema& schema, bool* in_place) {
  std::string_view name = schema.name();
  *in_place = name.ends_with("_") && !name.ends_with("__");
  if (*in_place) name.remove_suffix(1);
  for (const NumberCallRow& row : kNumberCalls)
    if (row.op == name && row.overload == schema.overload_name()) return &row;
  return nullptr;
}

// A wrapped number becomes a tensor beside the first other tensor.
void replace_wrapped(torch::jit::Stack& stack, size_t count) {
  auto arguments = torch::jit::last(stack, count);
  at::Tensor like;
  for (const IValue& value : arguments)
    if (value.isTensor() && value.toTensor().defined() && !hidden_float(value.toTensor())) {
      like = value.toTensor();
      break;
    }
  for (size_t i = 0; i < count; ++i) {
    IValue& value = stack[stack.size() - count + i];
    if (!value.isTensor()) continue;
    if (GraphFloatRef number = hidden_float(value.toTensor()))
      value = like.defined() ? beside(number, like) : number->tensor;
  }
}

}  // namespace

Ref hidden_behind(const at::Tensor& tensor) {
  Ref object = Ref::steal(THPVariable_Wrap(tensor));
  Ref number = object ? Ref::steal(PyObject_GetAttrString(object.get(), "_wrapped_number")) : Ref();
  if (!number) PyErr_Clear();
  return number;
}

bool call_with_numbers(const c10::OperatorHandle& handle, torch::jit::Stack& stack) {
  const size_t count = handle.schema().arguments().size();
  bool scalars = false, wrapped = false;
  for (const IValue& value : torch::jit::last(stack, count)) {
    if (!number_at(value)) continue;
    (value.isTensor() ? wrapped : scalars) = true;
  }
  bool in_place = false;
  const NumberCallRow* row = scalars ? find_row(handle.schema(), &in_place) : nullptr;
  if (row && torch::jit::peek(stack, 0, count).isTensor()) {
    const auto last = torch::jit::last(stack, count);
    const std::vector<IValue> arguments(last.begin(), last.end());
    torch::jit::drop(stack, count);
    const Arguments args{arguments};
    stack.emplace_back(finish(args.self(), row->last(args), in_place));
    return true;
  }
  if (wrapped) replace_wrapped(stack, count);
  for (size_t i = 0; scalars && i < count; ++i) {
    IValue& value = stack[stack.size() - count + i];
    if (value.isSymFloat()) value = to_double(value.toSymFloat());
  }
  return false;
}

}  // namespace graphlift::torch_layer
