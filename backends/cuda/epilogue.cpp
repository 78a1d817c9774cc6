// Owns: the table of calls that cuBLASLt finishes products with.
#include "backends/cuda/epilogue.h"

#include <algorithm>
#include <string_view>

#include "ops/layout.h"

namespace graphlift::cuda {
namespace {

using ir::Node;
using ir::TensorType;

// One call behind the product. `other`: the place of the one tensor that it reads besides, -1: none.
struct Step {
  const Node& call;
  const TensorType& value;  // of the product so far
  const TensorType& first;  // of the product itself
  const TensorType* other_type;
  int other;
};

// False: it can't be done behind what `made` has already.
using Rule = bool (*)(const Step& step, Finishing* made);

bool is_activated(const Finishing& made) { return made.activation != Activation::None; }

std::optional<double> real(const ir::Arg& arg) {
  if (const auto* number = std::get_if<double>(&arg)) return *number;
  if (const ir::Sym* number = arg.sym(); number && number->is_constant())
    return static_cast<double>(number->constant());
  return std::nullopt;
}

bool lies_as(const TensorType& a, const TensorType& b) {
  return a.dtype == b.dtype && ops::same(a.sizes, b.sizes) && ops::same(a.strides, b.strides);
}

bool is_row_by_row(const TensorType& type) { return ops::same(type.strides, ir::contiguous_strides(type.sizes)); }

// One row of numbers that all rows of the value get, which are rows of the product, too.
bool is_bias(const Step& step) {
  const TensorType& it = *step.other_type;
  return it.rank() == 1 && it.dtype == step.value.dtype && it.strides[0].same(1) &&
         it.sizes[0].same(step.value.sizes.back()) && it.sizes[0].same(step.first.sizes.back()) &&
         is_row_by_row(step.value);
}

bool add_tensor(const Step& step, double times, Finishing* made) {
  if (is_activated(*made)) return false;
  if (times == 1 && made->bias < 0 && is_bias(step)) {
    made->bias = step.other;
    return true;
  }
  if (made->added >= 0 || made->beta != 0 || !lies_as(*step.other_type, step.value)) return false;
  made->added = step.other;
  made->like_result = true;
  made->beta = times;
  return true;
}

// self, other, alpha.
template <int sign>
bool sum(const Step& step, Finishing* made) {
  const auto times = real(step.call.args[2]);
  return times == 1 && step.other >= 0 && add_tensor(step, sign, made);
}

// By a number: nothing may have been added before. The library does not read what it multiplies by 0.
bool scale(const Step& step, Finishing* made) {
  const auto number = real(step.call.args[1]);
  if (!number || *number == 0 || is_activated(*made) || made->added >= 0 || made->bias >= 0) return false;
  made->alpha *= *number;
  return true;
}

template <Activation which>
bool activate(const Step&, Finishing* made) {
  if (is_activated(*made)) return false;
  made->activation = which;
  return true;
}

// The library's tanh is not exact to float32's last digits.
bool is_short(const TensorType& type) { return ir::bytes(type.dtype) == 2; }

bool is_tanh(const ir::Arg& how) {
  const auto* word = std::get_if<std::string>(&how);
  return word && *word == "tanh";
}

// What others read of the product before it is stored beside.
bool gelu(const Step& step, Finishing* made) {
  if (!is_short(step.value) || !is_tanh(step.call.args[1])) return false;
  if (!made->kept) return activate<Activation::Gelu>(step, made);
  made->kept = nullptr;
  return activate<Activation::GeluKept>(step, made);
}

// grad_output, self, approximate.
bool gelu_backward(const Step& step, Finishing* made) {
  if (!is_short(step.value) || !is_tanh(step.call.args[2]) || made->bias >= 0 || made->added >= 0 || step.other < 0 ||
      !lies_as(*step.other_type, step.value))
    return false;
  made->aux = step.other;
  return activate<Activation::GeluBackward>(step, made);
}

// Where nothing else was done, a product of 16 bits need not be rounded to them first.
bool widen(const Step& step, Finishing* made) {
  const TensorType& to = *step.call.outputs[0];
  if (to.dtype != ir::DType::float32 || !is_short(step.value) || is_activated(*made) || made->bias >= 0 ||
      made->added >= 0)
    return false;
  return made->widens = true;
}

struct Row {
  std::string_view name;
  Rule rule;
  bool commutes = false;  // the value may be the second argument, too
  bool converts = false;  // the result is of another dtype
};

constexpr Row kRows[] = {
    {"aten::relu.default", activate<Activation::Relu>},
    {"aten::gelu.default", gelu},
    {"aten::gelu_backward.default", gelu_backward},
    {"aten::add.Tensor", sum<1>, true},
    {"aten::sub.Tensor", sum<-1>},
    {"aten::mul.Tensor", scale},
    {"aten::_to_copy.default", widen, false, true},
};

bool apply(const Node& call, const ir::ValueRef& value, const TensorType& first, int other, Finishing* made) {
  const auto row =
      std::find_if(std::begin(kRows), std::end(kRows), [&](const Row& it) { return it.name == call.op.str(); });
  if (row == std::end(kRows) || !call.outputs[0]) return false;
  TensorType from = ir::type_of(value);
  if (row->converts) from.dtype = call.outputs[0]->dtype;
  if (!lies_as(*call.outputs[0], from) || !(call.outputs[0]->device == from.device)) return false;
  const bool second = !(call.args[0].value() && *call.args[0].value() == value);
  if (second && !row->commutes) return false;
  const ir::ValueRef* beside = call.args.size() > 1 ? call.args[second ? 0 : 1].value() : nullptr;
  const TensorType* type = beside ? &ir::type_of(*beside) : nullptr;
  return row->rule({call, ir::type_of(value), first, type, beside ? other : -1}, made);
}

}  // namespace

bool is_plain_view(const Node& call) {
  if (call.op.str() != "aten::view.default" && call.op.str() != "aten::_unsafe_view.default") return false;
  return call.outputs[0] && is_row_by_row(*call.outputs[0]) && is_row_by_row(ir::type_of(*call.args[0].value()));
}

std::optional<Finishing> finished(const codegen::NativeOperation& operation, Finishing made) {
  int next = 0;  // the operand that the next call reads
  made.kept = operation.kept;
  bool passed = operation.kept == operation.node;  // what is kept: from there on, only views may come before its use
  for (const ir::Arg& arg : operation.node->args) ir::for_each_value(arg, [&](const ir::ValueRef&) { ++next; });
  const Node* before = operation.node;
  for (const Node* call : operation.epilogue) {
    const ir::ValueRef value{const_cast<Node*>(before), 0};
    if (!is_plain_view(*call)) {
      const bool due = passed && made.kept;
      if (!apply(*call, value, *operation.node->outputs[0], next, &made) || (due && made.kept)) return std::nullopt;
      if (!due && made.kept != operation.kept) return std::nullopt;
    }
    passed = passed || call == operation.kept;
    for (const ir::Arg& arg : call->args)
      ir::for_each_value(arg, [&](const ir::ValueRef& read) { next += read.node != before; });
    before = call;
  }
  return made;
}

}  // namespace graphlift::cuda
