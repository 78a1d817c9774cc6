// Owns: the interface of lowering rows: an aten call as primitives. Families of rows live in lower_<family>.cpp; the
// table joins them. Must not: know which primitives share a kernel, or torch.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "backends/codegen/lower.h"
#include "ir/graph.h"

namespace graphlift::codegen {

// A value under construction, with arithmetic. Numbers take the type of the other operand.
class Expr {
 public:
  Expr(TensorGraph* graph, Value value) : graph_(graph), value_(value) {}
  Value value() const { return value_; }
  TensorGraph* graph() const { return graph_; }
  ir::DType type() const { return computed_as(*value_); }
  int rank() const { return value_->rank(); }
  const ir::Dims& sizes() const { return value_->sizes; }
  Expr number(double value) const { return {graph_, graph_->number(value, type())}; }
  Expr number(const ir::Sym& value) const { return {graph_, graph_->number(value, type())}; }
  Expr cast(ir::DType type) const { return {graph_, graph_->cast(value_, type)}; }

 private:
  TensorGraph* graph_;
  Value value_;
};

Expr apply(Prim prim, const Expr& a);
Expr apply(Prim prim, const Expr& a, const Expr& b);
inline Expr apply(Prim prim, const Expr& a, double b) { return apply(prim, a, a.number(b)); }
inline Expr apply(Prim prim, double a, const Expr& b) { return apply(prim, b.number(a), b); }
Expr select(const Expr& condition, const Expr& yes, const Expr& no);
ir::Sym count(const Expr& x, const std::vector<bool>& dims);  // elements along dims
Expr sum(const Expr& a, const std::vector<bool>& dims);       // dims stay, with size 1

#define GL_OPERATOR(symbol, prim)                                                         \
  inline Expr operator symbol(const Expr& a, const Expr& b) { return apply(prim, a, b); } \
  inline Expr operator symbol(const Expr& a, double b) { return apply(prim, a, b); }      \
  inline Expr operator symbol(double a, const Expr& b) { return apply(prim, a, b); }
GL_OPERATOR(+, Prim::Add)
GL_OPERATOR(-, Prim::Sub)
GL_OPERATOR(*, Prim::Mul)
GL_OPERATOR(/, Prim::Div)
GL_OPERATOR(<, Prim::Lt)
GL_OPERATOR(<=, Prim::Le)
GL_OPERATOR(>, Prim::Gt)
GL_OPERATOR(>=, Prim::Ge)
GL_OPERATOR(==, Prim::Eq)
GL_OPERATOR(!=, Prim::Ne)
#undef GL_OPERATOR

struct LowerCall {
  const ir::Node& node;
  TensorGraph& graph;
  const std::function<Value(const ir::ValueRef&)>& read;
  bool gathers = false;  // whether kernels may read at places from data
  bool places = false;   // at places computed from indices
  MomentPasses moments = MomentPasses::Two;
  bool skips_loads = false;         // see LowerOptions
  std::vector<Value> results = {};  // one per output of the node; null where nothing is

  bool none(size_t i) const { return node.args[i].is_none(); }
  bool is_tensor(size_t i) const { return node.args[i].value() != nullptr; }
  Expr tensor(size_t i) const { return {&graph, read(*node.args[i].value())}; }
  const ir::TensorType& type(size_t i) const;  // of a tensor argument
  const ir::TensorType& out(size_t i = 0) const { return *node.outputs[i]; }
  bool wants(size_t i) const { return i < node.outputs.size() && node.outputs[i].has_value(); }
  // A tensor or a number, in the compute type of `dtype`.
  Expr operand(size_t i, ir::DType dtype) const;
  // Whether torch's checked conversion takes it: fills raise on numbers that a dtype does not have. Tensors: yes.
  bool fits(size_t i, ir::DType dtype) const;
  double real(size_t i) const;
  ir::Sym sym(size_t i) const { return *node.args[i].sym(); }
  int64_t integer(size_t i) const { return node.args[i].sym()->constant(); }
  bool boolean(size_t i) const { return std::get<bool>(node.args[i]); }
  ir::Dims syms(size_t i) const;
  // The dims that argument i names, as flags over `rank` dims; none or an empty list: all.
  std::vector<bool> dims(size_t i, int rank) const;
  int dim(size_t i, int rank) const;
  // torch.result_type of arguments, and whether kernels compute with it.
  std::optional<ir::DType> common(std::initializer_list<size_t> args) const;

  bool give(const Expr& value) {
    results.push_back(value.value());
    return true;
  }
  bool give_nothing() {
    results.push_back(nullptr);
    return true;
  }
};

// False: this call is outside the rule, and stays torch's. What the rule made by then is of no use and is dropped.
using LowerRule = bool (*)(LowerCall& call);

struct LowerRow {
  std::string_view name;
  LowerRule rule;
};

const LowerRow* find_lowering(ir::Op op);  // null: extern
std::vector<const LowerRow*> all_lowerings();

#define GRAPHLIFT_LOWER_FAMILIES(FAMILY) \
  FAMILY(unary)                          \
  FAMILY(binary)                         \
  FAMILY(activations)                    \
  FAMILY(selection)                      \
  FAMILY(indexing)                       \
  FAMILY(reductions)                     \
  FAMILY(norms)                          \
  FAMILY(losses)                         \
  FAMILY(views)                          \
  FAMILY(pieces)                         \
  FAMILY(random)                         \
  FAMILY(factories)

#define FAMILY(name) std::span<const LowerRow> lower_##name##_rows();
GRAPHLIFT_LOWER_FAMILIES(FAMILY)
#undef FAMILY

}  // namespace graphlift::codegen

#define GL_LOWER(name, overload, ...) {"aten::" name "." overload, __VA_ARGS__}
