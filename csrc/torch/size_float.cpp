// Owns: see size_float.h.
#include "torch/size_float.h"

#include <ATen/ATen.h>

#include <cmath>

#include "torch/fake.h"
#include "torch/sym_node.h"

namespace graphlift::torch_layer {

namespace {

struct FunctionRow {
  NumberFunction function;
  double (*of_number)(double);
  at::Tensor (*of_tensor)(const at::Tensor&);
};
constexpr FunctionRow kFunctions[] = {
    {NumberFunction::Sqrt, std::sqrt, at::sqrt}, {NumberFunction::Log, std::log, at::log},
    {NumberFunction::Cos, std::cos, at::cos},    {NumberFunction::Sin, std::sin, at::sin},
    {NumberFunction::Tanh, std::tanh, at::tanh},
};

}  // namespace

double compute(NumberFunction f, double x) { return kFunctions[static_cast<size_t>(f)].of_number(x); }
at::Tensor compute(NumberFunction f, const at::Tensor& x) { return kFunctions[static_cast<size_t>(f)].of_tensor(x); }

at::Tensor compute(Arithmetic op, const at::Tensor& a, const at::Tensor& b) {
  switch (op) {
    case Arithmetic::Add:
      return at::add(a, b);
    case Arithmetic::Sub:
      return at::sub(a, b);
    case Arithmetic::Mul:
      return at::mul(a, b);
    case Arithmetic::Div:
      return at::div(a, b);
    case Arithmetic::Pow:
      return at::pow(a, b);
    case Arithmetic::Max:
      return at::where(at::gt(b, a), b, a);
    case Arithmetic::Min:
      return at::where(at::lt(b, a), b, a);
  }
  return {};
}

double compute(Arithmetic op, double a, double b) {
  switch (op) {
    case Arithmetic::Add:
      return a + b;
    case Arithmetic::Sub:
      return a - b;
    case Arithmetic::Mul:
      return a * b;
    case Arithmetic::Div:
      return a / b;
    case Arithmetic::Pow:
      return std::pow(a, b);
    case Arithmetic::Max:
      return b > a ? b : a;
    case Arithmetic::Min:
      return b < a ? b : a;
  }
  return 0;
}

double value_now(const SizeFloat& of, ir::ShapeEnv& env) {
  if (of.op) return compute(*of.op, value_now(*of.left, env), value_now(*of.right, env));
  return of.size.is_constant() ? of.number : static_cast<double>(env.specialize(of.size));
}

at::Tensor graph_tensor(const SizeFloat& of, ir::ShapeEnv& env) {
  if (of.op) {
    const at::Tensor a = graph_tensor(*of.left, env), b = graph_tensor(*of.right, env);
    return a.defined() && b.defined() ? compute(*of.op, a, b) : at::Tensor();
  }
  if (of.size.is_constant()) {
    at::Tensor number = c10::scalar_to_tensor(of.number);
    number.unsafeGetTensorImpl()->set_wrapped_number(true);  // a number in the graph, too
    return number;
  }
  const at::Tensor made = at::scalar_tensor(c10::Scalar(to_sym_int(env, of.size)), at::kDouble);
  return fake_storage(made) ? made : at::Tensor();
}

std::optional<ShiftedSize> shifted_size(const SizeFloat& of) {
  if (!of.op) return ShiftedSize{of.size, of.number};
  const bool sum = *of.op == Arithmetic::Add;
  if (!sum && *of.op != Arithmetic::Sub) return std::nullopt;
  const auto a = shifted_size(*of.left), b = shifted_size(*of.right);
  if (!a || !b) return std::nullopt;
  return sum ? ShiftedSize{a->size + b->size, a->by + b->by} : ShiftedSize{a->size - b->size, a->by - b->by};
}

}  // namespace graphlift::torch_layer
