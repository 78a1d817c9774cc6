// Owns: see number_values.h.
#include "torch/number_values.h"

#include <torch/csrc/autograd/python_variable.h>

#include <string_view>

#include "torch/convert.h"
#include "torch/tracer.h"

namespace graphlift::torch_layer {
namespace {

// A chain of updates in one region is short; a longer one is not followed.
constexpr int kDepth = 32;

bool is_scalar(const ir::TensorType& type) {
  const c10::ScalarType dtype = to_torch(type.dtype);
  return type.rank() == 0 && to_torch(type.device).is_cpu() && (dtype == c10::kFloat || dtype == c10::kDouble);
}

// Results are rounded to their dtype.
OfInput rounded(OfInput number, c10::ScalarType dtype) {
  if (dtype == c10::kDouble) return number;
  return {number.primal,
          [value = std::move(number.value)](double x) -> double { return static_cast<float>(value(x)); }};
}

// ROW(operator without overload, what it computes) on operands of the result's dtype: exact enough in doubles that
// rounding gives what eager gives.
struct NumberValueRow {
  std::string_view op;
  double (*f)(double, double);
};
constexpr NumberValueRow kNumberValues[] = {
    {"aten::add", [](double a, double b) { return a + b; }},
    {"aten::sub", [](double a, double b) { return a - b; }},
    {"aten::mul", [](double a, double b) { return a * b; }},
    {"aten::div", [](double a, double b) { return a / b; }},
};
constexpr std::string_view kSame[] = {"aten::_to_copy", "aten::clone", "aten::detach", "aten::alias",
                                      "aten::lift_fresh"};

class Walk {
 public:
  explicit Walk(const Beginnings& from) : from_(from) {}

  std::optional<OfInput> operator()(const ir::ValueRef& value, int depth) const {
    const ir::Node& node = *value.node;
    const auto& type = node.outputs.at(static_cast<size_t>(value.index));
    if (!type || !is_scalar(*type) || depth > kDepth) return std::nullopt;
    if (node.kind == ir::NodeKind::Input) {
      const int primal = from_.primal_of(&node);
      if (primal < 0) return std::nullopt;
      return OfInput{primal, [](double x) { return x; }};
    }
    std::string_view op = node.op.str();
    if (op == "graphlift::constant") {
      const ir::Sym* index = node.args.at(0).sym();
      const std::optional<double> held = index ? from_.constant(index->constant()) : std::nullopt;
      return held ? std::optional(constant_number(*held)) : std::nullopt;
    }
    const std::string_view overload = op.substr(std::min(op.size(), op.find('.') + 1));
    op = op.substr(0, op.find('.'));
    if (op == "aten::zeros" || op == "aten::ones") return constant_number(op == "aten::ones");
    if (op == "aten::full") return converted(number_argument(node.args.at(1)), *type);
    for (std::string_view same : kSame)
      if (op == same) return converted(argument(node.args.at(0), depth), *type);
    const bool plain = overload == "Tensor" || overload == "Scalar";  // no rounding mode
    for (const NumberValueRow& row : kNumberValues)
      if (op == row.op && plain && is_one(node.args))
        return converted(combined(converted(argument(node.args.at(0), depth), *type),
                                  converted(argument(node.args.at(1), depth), *type), row.f),
                         *type);
    return std::nullopt;
  }

 private:
  static std::optional<OfInput> converted(std::optional<OfInput> number, const ir::TensorType& type) {
    if (!number) return number;
    return rounded(std::move(*number), to_torch(type.dtype));
  }
  // alpha, where there is one
  static bool is_one(const ir::ArgList& args) {
    if (args.size() < 3) return true;
    const std::optional<OfInput> alpha = number_argument(args[2]);
    return alpha && alpha->value(0) == 1;
  }
  static std::optional<OfInput> number_argument(const ir::Arg& arg) {
    if (const auto* number = std::get_if<double>(&arg)) return constant_number(*number);
    if (const ir::Sym* sym = arg.sym(); sym && sym->is_constant())
      return constant_number(static_cast<double>(sym->constant()));
    return std::nullopt;
  }
  std::optional<OfInput> argument(const ir::Arg& arg, int depth) const {
    if (const ir::ValueRef* value = arg.value()) return (*this)(*value, depth + 1);
    return number_argument(arg);
  }

  const Beginnings& from_;
};

class DecisionCheck final : public guards::LeafCheck {
 public:
  DecisionCheck(std::function<bool(double)> decide, bool expected) : decide_(std::move(decide)), expected_(expected) {}
  bool check(PyObject* object, int64_t*) const override {
    const std::optional<double> held = is_tensor(object) ? held_number(THPVariable_Unpack(object)) : std::nullopt;
    return held && decide_(*held) == expected_;
  }
  std::string text(const std::string& origin) const override {
    return "what was decided on the number in " + origin + " is decided so again";
  }
  std::string explain(PyObject*) const override { return "holds a number on which it is decided otherwise"; }
  int cost() const override { return 5; }

 private:
  std::function<bool(double)> decide_;
  bool expected_;
};

}  // namespace

OfInput constant_number(double value) {
  return {-1, [value](double) { return value; }};
}

std::optional<OfInput> combined(const std::optional<OfInput>& a, const std::optional<OfInput>& b,
                                std::function<double(double, double)> f) {
  if (!a || !b || (a->primal >= 0 && b->primal >= 0 && a->primal != b->primal)) return std::nullopt;
  return OfInput{std::max(a->primal, b->primal),
                 [f = std::move(f), p = a->value, q = b->value](double x) { return f(p(x), q(x)); }};
}

std::optional<OfInput> number_of_value(const ir::ValueRef& value, const Beginnings& from) {
  return Walk(from)(value, 0);
}

std::optional<double> held_number(const at::Tensor& tensor) {
  if (tensor.dim() != 0 || !tensor.is_cpu() || !tensor.has_storage()) return std::nullopt;
  if (tensor.scalar_type() == c10::kFloat) return *tensor.const_data_ptr<float>();
  if (tensor.scalar_type() == c10::kDouble) return *tensor.const_data_ptr<double>();
  return std::nullopt;
}

std::unique_ptr<guards::LeafCheck> decision_check(std::function<bool(double)> decide, bool expected) {
  return std::make_unique<DecisionCheck>(std::move(decide), expected);
}

}  // namespace graphlift::torch_layer
