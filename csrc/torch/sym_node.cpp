#include "torch/sym_node.h"

#include <c10/core/SymFloat.h>
#include <c10/core/SymNodeImpl.h>
#include <torch/csrc/utils/pybind.h>
#include <torch/csrc/utils/python_symnode.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "base/error.h"
#include "base/gil.h"
#include "ops/layout.h"
#include "torch/any_layout.h"
#include "torch/size_float.h"

namespace graphlift::torch_layer {
namespace {

using c10::SymNode;
using ir::Relation;
using ir::Sym;

// A condition that is decided only when somebody asks: a comparison, a constant, or a combination of conditions.
struct Condition {
  enum class Kind { Constant, Compare, Not, And, Or } kind = Kind::Constant;
  std::function<bool()> decide = {};  // in another way, which asks for less
  bool constant = false;
  Relation relation = Relation::Eq;
  Sym left, right;
  std::shared_ptr<const Condition> first, second;
};
using ConditionRef = std::shared_ptr<const Condition>;

// The members of Node hide these names.
Sym sym_floordiv(const Sym& a, const Sym& b) { return floordiv(a, b); }
Sym sym_mod(const Sym& a, const Sym& b) { return mod(a, b); }
Sym smaller(const Sym& a, const Sym& b) { return min(a, b); }
Sym larger(const Sym& a, const Sym& b) { return max(a, b); }

ConditionRef compared(Relation relation, Sym left, Sym right) {
  return std::make_shared<Condition>(Condition{
      .kind = Condition::Kind::Compare, .relation = relation, .left = std::move(left), .right = std::move(right)});
}

ConditionRef combined(Condition::Kind kind, ConditionRef first, ConditionRef second) {
  return std::make_shared<Condition>(Condition{.kind = kind, .first = std::move(first), .second = std::move(second)});
}

ConditionRef constant(bool value) { return std::make_shared<Condition>(Condition{.constant = value}); }

// What is known of it is known of sizes and strides; decided it asks for less.
ConditionRef contiguity(ir::ShapeEnv& env, ir::TensorType type) {
  ConditionRef nested = constant(true), empty = constant(false);
  Sym expected = 1;
  for (size_t d = type.sizes.size(); d-- > 0;) {
    ConditionRef in_place = combined(Condition::Kind::Or, compared(Relation::Eq, type.sizes[d], 1),
                                     compared(Relation::Eq, type.strides[d], expected));
    nested = combined(Condition::Kind::And, nested, std::move(in_place));
    empty = combined(Condition::Kind::Or, empty, compared(Relation::Eq, type.sizes[d], 0));
    expected = expected * type.sizes[d];
  }
  Condition contiguous = *combined(Condition::Kind::Or, nested, empty);
  contiguous.decide = [&env, type = std::move(type)] { return ops::is_contiguous(env, type); };
  return std::make_shared<Condition>(std::move(contiguous));
}

// `decide` answers one comparison.
template <class Decide>
std::optional<bool> evaluate(const Condition& c, const Decide& decide) {
  switch (c.kind) {
    case Condition::Kind::Constant:
      return c.constant;
    case Condition::Kind::Compare:
      return decide(c);
    case Condition::Kind::Not: {
      auto value = evaluate(*c.first, decide);
      return value ? std::optional<bool>(!*value) : std::nullopt;
    }
    case Condition::Kind::And:
    case Condition::Kind::Or: {
      bool stop = c.kind == Condition::Kind::Or;
      auto first = evaluate(*c.first, decide);
      if (first && *first == stop) return stop;
      auto second = evaluate(*c.second, decide);
      if (second && *second == stop) return stop;
      return first && second ? std::optional<bool>(!stop) : std::nullopt;
    }
  }
  return std::nullopt;
}

class Node final : public c10::SymNodeImpl {
 public:
  enum class Kind { Int, Bool, Float };
  Node(ir::ShapeEnv& env, Sym value) : env_(env), kind_(Kind::Int), value_(std::move(value)) {}
  Node(ir::ShapeEnv& env, ConditionRef condition) : env_(env), kind_(Kind::Bool), condition_(std::move(condition)) {}
  Node(ir::ShapeEnv& env, double number) : env_(env), kind_(Kind::Float), number_(number) {}
  Node(ir::ShapeEnv& env, GraphFloatRef value) : env_(env), kind_(Kind::Float), graph_(std::move(value)) {}
  Node(ir::ShapeEnv& env, SizeFloatRef value) : env_(env), kind_(Kind::Float), sized_(std::move(value)) {}

  const Sym& value() const { return value_; }
  Kind kind() const { return kind_; }
  const GraphFloatRef& graph() const { return graph_; }
  // See graph_float_of_sizes().
  GraphFloatRef computed() {
    if (!sized_ || computed_) return computed_;
    GraphFloat made{graph_tensor(*sized_, env_)};
    if (!made.tensor.defined()) return nullptr;
    made.fix = [&env = env_, of = sized_] { return value_now(*of, env); };
    return computed_ = std::make_shared<GraphFloat>(std::move(made));
  }

  // torch's conversions from and to Python know nodes of C++ as ints alone; a float of the graph passes as one there.
  bool is_int() override { return kind_ == Kind::Int || graph_; }
  bool is_bool() override { return kind_ == Kind::Bool; }
  bool is_float() override { return kind_ == Kind::Float; }
  bool has_hint() override { return true; }
  bool is_symbolic() override { return true; }
  SymNode clone() override { return c10::intrusive_ptr<SymNodeImpl>::reclaim_copy(this); }
  SymNode wrap_int(int64_t n) override { return make(Sym(n)); }
  SymNode wrap_bool(bool b) override { return make(constant(b)); }
  SymNode wrap_float(double d) override { return make(d); }

  SymNode add(const SymNode& o) override {
    return floats(o) ? arithmetic(Arithmetic::Add, o) : make(value_ + of(o).value_);
  }
  SymNode sub(const SymNode& o) override {
    return floats(o) ? arithmetic(Arithmetic::Sub, o) : make(value_ - of(o).value_);
  }
  SymNode mul(const SymNode& o) override {
    return floats(o) ? arithmetic(Arithmetic::Mul, o) : make(value_ * of(o).value_);
  }
  SymNode truediv(const SymNode& o) override {
    const bool zero = compare(Relation::Eq, of(o), of(make(0.0)))->guard_bool(__FILE__, __LINE__);
    TORCH_CHECK_WITH(ValueError, !zero, "division by zero");
    return arithmetic(Arithmetic::Div, o);
  }
  SymNode floordiv(const SymNode& o) override {
    if (floats(o)) return make(std::floor(real() / of(o).real()));
    check_divisor(o);
    return make(sym_floordiv(value_, of(o).value_));
  }
  SymNode mod(const SymNode& o) override {
    if (floats(o)) {
      double a = real(), b = of(o).real();
      return make(a - std::floor(a / b) * b);
    }
    check_divisor(o);
    return make(sym_mod(value_, of(o).value_));
  }
  SymNode pow(const SymNode& o) override {
    if (floats(o)) return make(std::pow(real(), of(o).real()));
    int64_t exponent = env_.specialize(of(o).value_);
    if (exponent < 0) return make(std::pow(real(), static_cast<double>(exponent)));
    Sym result = 1;
    for (int64_t i = 0; i < exponent; ++i) result = result * value_;
    return make(result);
  }
  SymNode neg() override { return kind_ == Kind::Float ? arithmetic(Arithmetic::Mul, make(-1.0)) : make(-value_); }
  SymNode ceil() override { return rounded(&std::ceil); }
  SymNode floor() override { return rounded(&std::floor); }
  SymNode sym_min(const SymNode& o) override {
    return floats(o) ? make(std::min(real(), of(o).real())) : make(smaller(value_, of(o).value_));
  }
  SymNode sym_max(const SymNode& o) override {
    return floats(o) ? make(std::max(real(), of(o).real())) : make(larger(value_, of(o).value_));
  }
  SymNode sym_float() override {
    const SizeFloatRef of = sized();
    return of ? make(of) : make(real());
  }

  SymNode eq(const SymNode& o) override { return compare(Relation::Eq, *this, of(o)); }
  SymNode ne(const SymNode& o) override { return compare(Relation::Ne, *this, of(o)); }
  SymNode lt(const SymNode& o) override { return compare(Relation::Lt, *this, of(o)); }
  SymNode le(const SymNode& o) override { return compare(Relation::Le, *this, of(o)); }
  SymNode gt(const SymNode& o) override { return compare(Relation::Lt, of(o), *this); }
  SymNode ge(const SymNode& o) override { return compare(Relation::Le, of(o), *this); }
  SymNode sym_not() override { return combine(Condition::Kind::Not, condition_, nullptr); }
  SymNode sym_and(const SymNode& o) override { return combine(Condition::Kind::And, condition_, of(o).condition_); }
  SymNode sym_or(const SymNode& o) override { return combine(Condition::Kind::Or, condition_, of(o).condition_); }
  SymNode sym_ite(const SymNode& yes, const SymNode& no) override { return decide() ? yes : no; }

  using Nodes = c10::ArrayRef<SymNode>;
  SymNode is_contiguous(Nodes sizes, Nodes strides) override {
    return make(contiguity(env_, laid_out(sizes, strides)));
  }
  SymNode is_channels_last_contiguous_2d(Nodes sizes, Nodes strides) override {
    return make(constant(ops::is_contiguous(env_, laid_out(sizes, strides), ops::Format::ChannelsLast)));
  }
  SymNode is_channels_last_contiguous_3d(Nodes sizes, Nodes strides) override {
    return make(constant(ops::is_contiguous(env_, laid_out(sizes, strides), ops::Format::ChannelsLast3d)));
  }
  SymNode is_channels_last_strides_2d(Nodes sizes, Nodes strides) override {
    return make(constant(ops::suggest_format(env_, laid_out(sizes, strides)) == ops::Format::ChannelsLast));
  }
  SymNode is_channels_last_strides_3d(Nodes sizes, Nodes strides) override {
    return make(constant(ops::suggest_format(env_, laid_out(sizes, strides)) == ops::Format::ChannelsLast3d));
  }
  SymNode is_non_overlapping_and_dense(Nodes sizes, Nodes strides) override {
    return make(constant(ops::is_dense(env_, laid_out(sizes, strides))));
  }

  int64_t guard_int(const char*, int64_t) override { return env_.specialize(value_); }
  int64_t int_() override { return env_.specialize(value_); }
  bool guard_bool(const char*, int64_t) override { return decide(); }
  bool bool_() override { return decide(); }
  // torch asks so where the answer "no" leads to code that is right for all sizes, or that asks whether they are equal.
  bool guard_or_false(const char*, int64_t) override {
    return asks_for_one() || (AnyLayout::is_on() && condition_ && condition_->decide) ? known().value_or(false)
                                                                                      : decide();
  }
  bool guard_or_true(const char*, int64_t) override { return AnyLayout::is_on() ? known().value_or(true) : decide(); }
  double guard_float(const char*, int64_t) override { return real(); }
  bool statically_known_true(const char*, int64_t) override { return known().value_or(false); }

  std::optional<int64_t> constant_int() override { return maybe_as_int(); }
  std::optional<int64_t> maybe_as_int() override {
    if (kind_ == Kind::Int && value_.is_constant()) return value_.constant();
    return std::nullopt;
  }
  std::optional<bool> constant_bool() override { return kind_ == Kind::Bool ? known() : std::nullopt; }
  std::string str() override {
    if (kind_ == Kind::Int) return value_.str();
    if (kind_ == Kind::Float) return graph_ ? "number" : std::to_string(number_);
    if (condition_->kind == Condition::Kind::Compare)
      return ir::SymGuard{condition_->relation, condition_->left, condition_->right}.str();
    return "condition";
  }

 private:
  static Node& of(const SymNode& node) {
    auto* ours = dynamic_cast<Node*>(node.get());
    GL_CHECK(ours, "symbolic integers of two tracers are mixed");
    return *ours;
  }
  template <class T>
  SymNode make(T value) {
    return c10::make_intrusive<Node>(env_, std::move(value));
  }
  bool floats(const SymNode& o) const { return kind_ == Kind::Float || of(o).kind_ == Kind::Float; }
  double real() {
    if (kind_ == Kind::Float) return number();
    return kind_ == Kind::Bool ? decide() : static_cast<double>(env_.specialize(value_));
  }
  void check_divisor(const SymNode& o) {
    bool zero = env_.guard(Relation::Eq, of(o).value_, 0);
    TORCH_CHECK_WITH(ValueError, !zero, "integer division or modulo by zero");
  }
  double number() { return graph_ ? graph_->fix() : sized_ ? value_now(*sized_, env_) : number_; }
  // Null: its value is not of sizes and numbers alone.
  SizeFloatRef sized() const {
    if (sized_ || graph_ || kind_ == Kind::Bool) return sized_;
    SizeFloat made;
    if (kind_ == Kind::Float)
      made.number = number_;
    else if (value_.is_constant())
      made.number = static_cast<double>(value_.constant());
    else
      made.size = value_;
    return std::make_shared<SizeFloat>(std::move(made));
  }
  bool varies() const { return sized_ || (kind_ == Kind::Int && !value_.is_constant()); }
  SymNode arithmetic(Arithmetic op, const SymNode& o) {
    Node& other = of(o);
    const SizeFloatRef a = sized(), b = other.sized();
    if (!a || !b || !(varies() || other.varies())) return make(compute(op, real(), other.real()));
    return make(SizeFloatRef(std::make_shared<SizeFloat>(SizeFloat{.op = op, .left = a, .right = b})));
  }
  SymNode rounded(double (*whole)(double)) {
    return kind_ == Kind::Float ? make(Sym(static_cast<int64_t>(whole(number()))))
                                : c10::intrusive_ptr<SymNodeImpl>::reclaim_copy(this);
  }
  SymNode compare(Relation relation, Node& a, Node& b) {
    if (a.kind_ == Kind::Int && b.kind_ == Kind::Int) return make(compared(relation, a.value_, b.value_));
    if (const ConditionRef of_sizes = compare_sizes(relation, a, b)) return make(of_sizes);
    double x = a.real(), y = b.real();
    bool holds = relation == Relation::Eq   ? x == y
                 : relation == Relation::Ne ? x != y
                 : relation == Relation::Lt ? x < y
                                            : x <= y;
    return make(constant(holds));
  }
  // size REL x, where that can be said in whole numbers.
  static ConditionRef compare_sizes(Relation relation, const Node& a, const Node& b) {
    const SizeFloatRef left = a.sized(), right = b.sized();
    const auto from = left ? shifted_size(*left) : std::nullopt, to = right ? shifted_size(*right) : std::nullopt;
    if (!from || !to) return nullptr;
    const Sym size = from->size - to->size;
    const double x = to->by - from->by;
    if (size.is_constant() || !(std::abs(x) < 0x1p53)) return nullptr;
    const bool equality = relation == Relation::Eq || relation == Relation::Ne;
    if (equality && x != std::floor(x)) return constant(relation == Relation::Ne);
    const double whole = relation == Relation::Lt ? std::ceil(x) : std::floor(x);
    return compared(relation, size, Sym(static_cast<int64_t>(whole)));
  }
  SymNode combine(Condition::Kind kind, ConditionRef first, ConditionRef second) {
    GL_CHECK(kind_ == Kind::Bool && first, "a condition is combined with a number");
    return make(combined(kind, std::move(first), std::move(second)));
  }
  bool asks_for_one() const {
    return kind_ == Kind::Bool && condition_->kind == Condition::Kind::Compare &&
           condition_->relation == Relation::Eq && (condition_->left.same(1) || condition_->right.same(1));
  }
  bool decide() {
    if (kind_ == Kind::Int) return env_.guard(Relation::Ne, value_, 0);
    if (kind_ == Kind::Float) return number() != 0;
    if (condition_->decide) return condition_->decide();
    auto answer = evaluate(*condition_, [this](const Condition& c) {
      return std::optional<bool>(env_.guard(c.relation, c.left, c.right));
    });
    return *answer;
  }
  std::optional<bool> known() {
    if (kind_ != Kind::Bool) return std::nullopt;
    return evaluate(*condition_, [this](const Condition& c) { return env_.known(c.relation, c.left, c.right); });
  }
  static ir::TensorType laid_out(Nodes sizes, Nodes strides) {
    ir::TensorType type;
    for (const SymNode& size : sizes) type.sizes.push_back(of(size).value_);
    for (const SymNode& stride : strides) type.strides.push_back(of(stride).value_);
    return type;
  }

  ir::ShapeEnv& env_;
  Kind kind_;
  Sym value_;
  ConditionRef condition_;
  double number_ = 0;
  GraphFloatRef graph_;
  SizeFloatRef sized_;
  GraphFloatRef computed_;
};

thread_local int any_layout = 0;

}  // namespace

AnyLayout::AnyLayout() { ++any_layout; }
AnyLayout::~AnyLayout() { --any_layout; }
bool AnyLayout::is_on() { return any_layout > 0; }
ProgramsLayout::ProgramsLayout() : around_(std::exchange(any_layout, 0)) {}
ProgramsLayout::~ProgramsLayout() { any_layout = around_; }

pybind11::object to_python_float(ir::ShapeEnv& env, GraphFloatRef value) {
  c10::SymInt as_int(SymNode(c10::make_intrusive<Node>(env, std::move(value))));
  return torch::get_symfloat_class()(pybind11::cast(std::move(as_int)).attr("node"));
}

namespace {

// Null: a known number, or no node of ours.
Node* node_of(const c10::SymFloat& value) {
  if (!value.is_symbolic()) return nullptr;
  SymNode held = value.toSymNodeImpl();
  // torch wraps the node of a Python SymFloat once more.
  if (auto* wrapper = dynamic_cast<torch::impl::PythonSymNodeImpl*>(held.get())) {
    WithGil gil;
    if (!wrapper->is_int()) return nullptr;  // of Python's own arithmetic
    pybind11::object as_int = torch::get_symint_class()(pybind11::handle(wrapper->getPyObj()));
    held = as_int.cast<c10::SymInt>().toSymNode();
  }
  return dynamic_cast<Node*>(held.get());
}

}  // namespace

GraphFloatRef graph_float(const c10::SymFloat& value) {
  Node* node = node_of(value);
  return node ? node->graph() : nullptr;
}

GraphFloatRef graph_float_of_sizes(const c10::SymFloat& value) {
  Node* node = node_of(value);
  return node ? node->computed() : nullptr;
}

c10::SymBool is_contiguous(ir::ShapeEnv& env, const ir::TensorType& type) {
  return c10::SymBool(SymNode(c10::make_intrusive<Node>(env, contiguity(env, type))));
}

c10::SymInt to_sym_int(ir::ShapeEnv& env, const Sym& value) {
  if (value.is_constant()) return c10::SymInt(value.constant());
  return c10::SymInt(SymNode(c10::make_intrusive<Node>(env, value)));
}

std::vector<c10::SymInt> to_sym_ints(ir::ShapeEnv& env, const ir::Dims& values) {
  std::vector<c10::SymInt> result;
  result.reserve(values.size());
  for (const Sym& value : values) result.push_back(to_sym_int(env, value));
  return result;
}

std::optional<Sym> to_sym(const c10::SymInt& value) {
  if (auto number = value.maybe_as_int()) return Sym(*number);
  SymNode held = value.toSymNode();
  auto* node = dynamic_cast<Node*>(held.get());
  if (!node || node->kind() != Node::Kind::Int) return std::nullopt;
  return node->value();
}

double to_double(const c10::SymFloat& value) { return value.guard_float(__FILE__, __LINE__); }

}  // namespace graphlift::torch_layer
