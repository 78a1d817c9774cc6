// Owns: floats that the graph computes, as the program's Python sees them: inputs that vary, numbers read from tensors,
// and arithmetic on them. In the graph they are doubles on the CPU without dimensions. Must not: know operators that
// take them (number_calls.cpp).
#include <ATen/ATen.h>
#include <torch/csrc/autograd/python_variable.h>
#include <torch/csrc/utils/pybind.h>
#include <torch/csrc/utils/python_symnode.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "torch/convert.h"
#include "torch/size_float.h"
#include "torch/sym_node.h"
#include "torch/tracer_impl.h"

namespace graphlift::torch_layer {
namespace {

// Doubles on the CPU, below autograd's and autocast's notice.
const ir::TensorType& number_type() {
  static const ir::TensorType type = [] {
    ir::TensorType made;
    made.dtype = from_torch(c10::kDouble);
    return made;
  }();
  return type;
}

GraphFloatRef graph_float_of(PyObject* object) {
  if (!torch::is_symfloat(object)) return nullptr;
  return graph_float(pybind11::handle(object).cast<c10::SymFloat>());
}

std::vector<int> joined(const GraphFloatRef& a, const GraphFloatRef& b) {
  std::set<int> all;
  for (const GraphFloatRef& one : {a, b})
    if (one) all.insert(one->inputs.begin(), one->inputs.end());
  return {all.begin(), all.end()};
}

// A float, or an int that a double holds exactly.
std::optional<double> plain_number(PyObject* object) {
  if (PyFloat_CheckExact(object)) return PyFloat_AS_DOUBLE(object);
  if (!PyLong_CheckExact(object)) return std::nullopt;
  int overflow = 0;
  const long long number = PyLong_AsLongLongAndOverflow(object, &overflow);
  if (overflow || number > (1LL << 53) || number < -(1LL << 53)) return std::nullopt;
  return static_cast<double>(number);
}

bool is_positive(const GraphFloatRef& number) { return number->positive && number->positive(); }

bool compared(int op, double a, double b) {
  switch (op) {
    case Py_LT:
      return a < b;
    case Py_LE:
      return a <= b;
    case Py_EQ:
      return a == b;
    case Py_NE:
      return a != b;
    case Py_GT:
      return a > b;
    default:
      return a >= b;
  }
}

}  // namespace

bool is_graph_float(PyObject* object) { return static_cast<bool>(graph_float_of(object)); }

Ref TracerImpl::wrap_float(GraphFloat number, std::function<double()> value) {
  auto made = std::make_shared<GraphFloat>(std::move(number));
  made->fix = [this, of_data = made->of_data, inputs = made->inputs, value = std::move(value)] {
    if (of_data) recorder_.break_now("data_dependent_item", "a number read from a tensor");
    for (int primal : inputs)
      if (on_fixed) on_fixed(primal);
    return value();
  };
  return Ref::steal(to_python_float(*shapes_, std::move(made)).release().ptr());
}

Ref TracerImpl::number_input(PyObject* number) {
  return with_python_errors([&] {
    const int index = static_cast<int>(primals_.size());
    Primal primal;
    primal.object = Ref::borrow(number);
    primal.number = true;
    primal.input = recorder_.graph().add_input("x" + std::to_string(index), number_type());
    primal.facts = std::make_shared<PrimalFacts>();
    primal.facts->tensor = number_type();
    primal.seen = recorder_.new_tensor(number_type(), {primal.input, 0});
    primal.slot = fake_storage(primal.seen)->base;
    at::Tensor seen = primal.seen;
    primals_.push_back(std::move(primal));
    const double now = PyFloat_AS_DOUBLE(number);
    return wrap_float({std::move(seen), false, {index}}, [now] { return now; });
  });
}

std::optional<int> TracerImpl::number_primal(PyObject* object) const {
  const GraphFloatRef number = graph_float_of(object);
  if (!number || number->of_data || number->inputs.size() != 1) return std::nullopt;
  const int primal = number->inputs[0];
  return primals_[static_cast<size_t>(primal)].seen.is_same(number->tensor) ? std::optional<int>(primal) : std::nullopt;
}

std::optional<Tracer::Decision> TracerImpl::decide(int op, PyObject* left, PyObject* right) {
  auto known = [](PyObject* object) -> std::optional<OfInput> {
    if (const GraphFloatRef number = graph_float_of(object)) return number->of_input;
    const std::optional<double> plain = plain_number(object);
    return plain ? std::optional(constant_number(*plain)) : std::nullopt;
  };
  const std::optional<OfInput> a = known(left), b = known(right);
  const std::optional<OfInput> both = combined(a, b, [op](double p, double q) -> double { return compared(op, p, q); });
  if (!both) return std::nullopt;
  if (both->primal < 0) return Decision{both->value(0) != 0, -1, nullptr};
  const std::optional<double> held =
      held_number(THPVariable_Unpack(primals_[static_cast<size_t>(both->primal)].object.get()));
  if (!held) return std::nullopt;
  auto decision = [value = both->value](double x) { return value(x) != 0; };
  const bool holds = decision(*held);
  return Decision{holds, both->primal, decision_check(std::move(decision), holds)};
}

Ref TracerImpl::number_tensor(PyObject* object) const {
  const GraphFloatRef number = graph_float_of(object);
  return number && !number->maybe_int && !number->rounded ? Ref::steal(THPVariable_Wrap(number->tensor)) : Ref();
}

Ref TracerImpl::number_of(PyObject* stand_in) {
  return with_python_errors([&]() -> Ref {
    const at::Tensor& tensor = THPVariable_Unpack(stand_in);
    const bool fits = fake_storage(tensor) && tensor.dim() == 0 && tensor.is_cpu() && tensor.is_floating_point();
    if (!fits) return {};
    GraphFloat number{tensor.detach().to(c10::kDouble, /*non_blocking=*/false, /*copy=*/true), true};
    auto primal_of = [this](const ir::Node* node) {
      for (size_t i = 0; i < primals_.size(); ++i)
        if (primals_[i].input == node) return primals_[i].number ? -1 : static_cast<int>(i);
      return -1;
    };
    auto constant = [this](int64_t index) { return held_number(recorder_.constants().at(static_cast<size_t>(index))); };
    number.of_input = number_of_value(recorder_.value_of(tensor), {primal_of, constant});
    return wrap_float(std::move(number), {});
  });
}

GraphFloatRef TracerImpl::size_as_float(PyObject* size) {
  const std::optional<ir::Sym> value = sym_of(size);
  if (!value || value->is_constant()) return nullptr;
  auto of = std::make_shared<const SizeFloat>(SizeFloat{*value});
  GraphFloat made{graph_tensor(*of, *shapes_)};
  made.maybe_int = true;
  made.positive = [this, value = *value] { return shapes_->guard(ir::Relation::Lt, 0, value); };
  made.fix = [this, of] { return value_now(*of, *shapes_); };
  return made.tensor.defined() ? std::make_shared<const GraphFloat>(std::move(made)) : nullptr;
}

Ref TracerImpl::arithmetic(Arithmetic op, PyObject* left, PyObject* right) {
  return with_python_errors([&]() -> Ref {
    const bool size_left = torch::is_symint(left), size_right = torch::is_symint(right);
    const bool whole = (size_left || PyLong_CheckExact(left)) && (size_right || PyLong_CheckExact(right));
    if ((size_left || size_right) && whole && op != Arithmetic::Div) return {};  // an int
    // What is divided by, or raised, is more than zero.
    PyObject* const safe = op == Arithmetic::Div && size_right ? right : op == Arithmetic::Pow ? left : nullptr;
    const bool is_safe = safe && torch::is_symint(safe) && shapes_->guard(ir::Relation::Lt, 0, *sym_of(safe));
    const GraphFloatRef a = size_left ? size_as_float(left) : graph_float_of(left),
                        b = size_right ? size_as_float(right) : graph_float_of(right);
    const std::optional<double> x = a ? std::nullopt : plain_number(left), y = b ? std::nullopt : plain_number(right);
    if ((!a && !x) || (!b && !y)) return {};
    // Python raises where a double has no answer; what is read from tensors is told apart by who asked for it.
    const bool of_data = (a && a->of_data) || (b && b->of_data);
    const bool chooses = op == Arithmetic::Max || op == Arithmetic::Min;
    const bool decays = op == Arithmetic::Pow && x && *x > 0 && *x <= 1 && size_right && is_positive(b);
    if (op == Arithmetic::Pow && !of_data && !(is_safe && y) && !decays) return {};
    if (op == Arithmetic::Div && (b ? !b->of_data && !is_safe && !is_positive(b) : *y == 0)) return {};
    auto operand = [](const GraphFloatRef& of, const std::optional<double>& number) {
      if (of) return of->tensor;
      at::Tensor constant = c10::scalar_to_tensor(*number);
      constant.unsafeGetTensorImpl()->set_wrapped_number(true);  // a number in the graph, too
      return constant;
    };
    GraphFloat number{compute(op, operand(a, x), operand(b, y)), of_data, joined(a, b)};
    auto known = [](const GraphFloatRef& of, const std::optional<double>& plain) {
      return of ? of->of_input : std::optional(constant_number(*plain));
    };
    number.of_input = combined(known(a, x), known(b, y), [op](double p, double q) { return compute(op, p, q); });
    const bool int_left = a ? a->maybe_int : PyLong_CheckExact(left),
               int_right = b ? b->maybe_int : PyLong_CheckExact(right);
    number.rounded = decays || (a && a->rounded) || (b && b->rounded);
    if (op != Arithmetic::Sub)
      number.positive = [op, a, b, x, y] {
        return (a ? is_positive(a) : *x > 0) && (op == Arithmetic::Pow || (b ? is_positive(b) : *y > 0));
      };
    number.maybe_int = op != Arithmetic::Div && (chooses ? int_left || int_right : int_left && int_right);
    auto value = [op, a, b, x, y] { return compute(op, a ? a->fix() : *x, b ? b->fix() : *y); };
    return wrap_float(std::move(number), of_data ? std::function<double()>() : value);
  });
}

// Python raises where there is no answer. Of ints that vary it is known where that is: they are no infinities, and made
// of positive ones they are positive.
Ref TracerImpl::function(NumberFunction f, PyObject* object) {
  return with_python_errors([&]() -> Ref {
    const GraphFloatRef of = torch::is_symint(object) ? size_as_float(object) : graph_float_of(object);
    if (!of || of->of_data) return {};
    const bool positive = f == NumberFunction::Sqrt || f == NumberFunction::Log;
    if (f != NumberFunction::Tanh && (!of->inputs.empty() || (positive && !is_positive(of)))) return {};
    GraphFloat number{compute(f, of->tensor)};
    number.inputs = of->inputs;
    number.rounded = of->rounded || f != NumberFunction::Sqrt;
    if (f == NumberFunction::Sqrt) number.positive = of->positive;
    return wrap_float(std::move(number), [f, of] { return compute(f, of->fix()); });
  });
}

}  // namespace graphlift::torch_layer
