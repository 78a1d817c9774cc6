// Owns: lowering of reductions and of softmax.
#include <limits>

#include "backends/codegen/lower_rule.h"
#include "base/error.h"

namespace graphlift::codegen {
namespace {

using ir::DType;

Expr reduced(ReduceKind kind, const Expr& x, const std::vector<bool>& dims, bool keep) {
  const Value value = x.graph()->reduce(kind, x.value(), dims);
  return {x.graph(), keep ? value : x.graph()->drop_dims(value, dims)};
}

// A reduction over no elements has rules of its own in torch.
bool is_empty(const Expr& x) {
  for (const ir::Sym& size : x.sizes())
    if (size.is_constant() && size.constant() == 0) return true;
  return false;
}

// self, dtype.
bool sum_all(LowerCall& call) {
  const Expr x = call.operand(0, call.out().dtype);
  return call.give(reduced(ReduceKind::Sum, x, std::vector<bool>(x.sizes().size(), true), false));
}

// self, dim, keepdim, dtype.
bool sum_dims(LowerCall& call) {
  const Expr x = call.operand(0, call.out().dtype);
  return call.give(reduced(ReduceKind::Sum, x, call.dims(1, x.rank()), call.boolean(2)));
}

// self, dtype.
bool prod_all(LowerCall& call) {
  const Expr x = call.operand(0, call.out().dtype);
  return !is_empty(x) && call.give(reduced(ReduceKind::Prod, x, std::vector<bool>(x.sizes().size(), true), false));
}

// self, dim, keepdim, dtype.
bool prod_dim(LowerCall& call) {
  const Expr x = call.operand(0, call.out().dtype);
  return !is_empty(x) && call.give(reduced(ReduceKind::Prod, x, call.dims(1, x.rank()), call.boolean(2)));
}

bool mean_all(LowerCall& call) {
  const Expr x = call.operand(0, call.out().dtype);
  const std::vector<bool> dims(x.sizes().size(), true);
  return !is_empty(x) && call.give(reduced(ReduceKind::Sum, x, dims, false) / x.number(count(x, dims)));
}

bool mean_dims(LowerCall& call) {
  const Expr x = call.operand(0, call.out().dtype);
  const auto dims = call.dims(1, x.rank());
  return !is_empty(x) && call.give(reduced(ReduceKind::Sum, x, dims, call.boolean(2)) / x.number(count(x, dims)));
}

// self, dim, keepdim.
template <ReduceKind kind>
bool extreme_dims(LowerCall& call) {
  const Expr x = call.tensor(0);
  return !is_empty(x) && call.give(reduced(kind, x, call.dims(1, x.rank()), call.boolean(2)));
}

template <ReduceKind kind>
bool extreme_all(LowerCall& call) {
  const Expr x = call.tensor(0);
  return !is_empty(x) && call.give(reduced(kind, x, std::vector<bool>(x.sizes().size(), true), false));
}

template <ReduceKind kind>
bool truth_all(LowerCall& call) {
  const Expr x = call.tensor(0);
  if (is_empty(x) || call.out().dtype != DType::bool_) return false;
  return call.give(reduced(kind, x != x.number(0.0), std::vector<bool>(x.sizes().size(), true), false));
}

template <ReduceKind kind>
bool truth_dims(LowerCall& call) {
  const Expr x = call.tensor(0);
  if (is_empty(x) || call.out().dtype != DType::bool_) return false;
  return call.give(reduced(kind, x != x.number(0.0), call.dims(1, x.rank()), call.boolean(2)));
}

struct Variance {
  Expr mean, variance;  // dims stay
};

// Arguments from `first`: dim, correction.
std::optional<Variance> variance(LowerCall& call, const Expr& x) {
  const auto dims = call.dims(1, x.rank());
  if (is_empty(x)) return std::nullopt;
  const ir::Sym elements = count(x, dims);
  const double correction = call.none(2) ? 1 : call.real(2);
  const Expr n = x.number(elements);
  const Expr mean = sum(x, dims) / n;
  const Expr off = x - mean;
  const Expr squares = sum(off * off, dims);
  if (!elements.is_constant()) return Variance{mean, squares / apply(Prim::Max, n - correction, 0.0)};
  const double freedom = static_cast<double>(elements.constant()) - correction;
  return freedom > 0 ? std::optional(Variance{mean, squares / freedom}) : std::nullopt;
}

Expr dropped(const Expr& x, const std::vector<bool>& dims, bool keep) {
  return keep ? x : Expr(x.graph(), x.graph()->drop_dims(x.value(), dims));
}

// self, dim, correction, keepdim.
template <bool root>
bool var(LowerCall& call) {
  const Expr x = call.operand(0, call.out().dtype);
  const auto v = variance(call, x);
  if (!v) return false;
  const Expr result = root ? apply(Prim::Sqrt, v->variance) : v->variance;
  return call.give(dropped(result, call.dims(1, x.rank()), call.boolean(3)));
}

template <bool root>
bool var_mean(LowerCall& call) {
  const Expr x = call.operand(0, call.out().dtype);
  const auto v = variance(call, x);
  if (!v) return false;
  const auto dims = call.dims(1, x.rank());
  const Expr result = root ? apply(Prim::Sqrt, v->variance) : v->variance;
  return call.give(dropped(result, dims, call.boolean(3))) && call.give(dropped(v->mean, dims, call.boolean(3)));
}

std::vector<bool> one_dim(LowerCall& call, size_t i, int rank) {
  std::vector<bool> dims(static_cast<size_t>(rank), false);
  if (rank > 0) dims[static_cast<size_t>(call.dim(i, rank))] = true;
  return dims;
}

// self, dim, half_to_float. The largest element is taken off first; a row of -inf gives NaN, as in torch.
struct Softmax {
  Expr largest, shifted, exponentials, total;
};
Softmax softmax_parts(LowerCall& call) {
  const Expr x = call.operand(0, call.out().dtype);
  const auto dims = one_dim(call, 1, x.rank());
  const Expr largest(&call.graph, call.graph.reduce(ReduceKind::Max, x.value(), dims));
  const Expr shifted = x - largest, exponentials = apply(Prim::Exp, shifted);
  return {largest, shifted, exponentials, sum(exponentials, dims)};
}

bool softmax(LowerCall& call) {
  if (is_empty(call.tensor(0))) return false;
  const Softmax parts = softmax_parts(call);
  return call.give(parts.exponentials / parts.total);
}

// A row of -inf, all of which is masked, gives zeros.
bool safe_softmax(LowerCall& call) {
  if (is_empty(call.tensor(0))) return false;
  const Softmax parts = softmax_parts(call);
  const Expr masked = parts.largest == parts.largest.number(-std::numeric_limits<double>::infinity());
  return call.give(select(masked, parts.total.number(0.0), parts.exponentials / parts.total));
}

bool log_softmax(LowerCall& call) {
  if (is_empty(call.tensor(0))) return false;
  const Softmax parts = softmax_parts(call);
  return call.give(parts.shifted - apply(Prim::Log, parts.total));
}

// self, dim, keepdim. What is infinite is not taken off: it stays.
bool log_sum_exp(LowerCall& call) {
  const Expr x = call.operand(0, call.out().dtype);
  if (is_empty(x)) return false;
  const auto dims = call.dims(1, x.rank());
  const Expr largest(&call.graph, call.graph.reduce(ReduceKind::Max, x.value(), dims));
  const Expr off =
      select(apply(Prim::Abs, largest) < std::numeric_limits<double>::infinity(), largest, largest.number(0.0));
  const Expr y = apply(Prim::Log, sum(apply(Prim::Exp, x - off), dims)) + off;
  return call.give(call.boolean(2) ? y : Expr(&call.graph, call.graph.drop_dims(y.value(), dims)));
}

// grad, output, dim, input_dtype.
bool softmax_backward(LowerCall& call) {
  const Expr grad = call.tensor(0), y = call.tensor(1);
  if (is_empty(y)) return false;
  const auto dims = one_dim(call, 2, y.rank());
  const Expr product = grad * y;
  return call.give(product - y * sum(product, dims));
}

bool log_softmax_backward(LowerCall& call) {
  const Expr grad = call.tensor(0), y = call.tensor(1);
  if (is_empty(y)) return false;
  const auto dims = one_dim(call, 2, y.rank());
  return call.give(grad - apply(Prim::Exp, y) * sum(grad, dims));
}

constexpr LowerRow kLowerReductions[] = {
    GL_LOWER("sum", "default", sum_all),
    GL_LOWER("sum", "dim_IntList", sum_dims),
    GL_LOWER("prod", "default", prod_all),
    GL_LOWER("prod", "dim_int", prod_dim),
    GL_LOWER("mean", "default", mean_all),
    GL_LOWER("mean", "dim", mean_dims),
    GL_LOWER("amax", "default", extreme_dims<ReduceKind::Max>),
    GL_LOWER("amin", "default", extreme_dims<ReduceKind::Min>),
    GL_LOWER("max", "default", extreme_all<ReduceKind::Max>),
    GL_LOWER("min", "default", extreme_all<ReduceKind::Min>),
    GL_LOWER("any", "default", truth_all<ReduceKind::Any>),
    GL_LOWER("all", "default", truth_all<ReduceKind::All>),
    GL_LOWER("any", "dim", truth_dims<ReduceKind::Any>),
    GL_LOWER("all", "dim", truth_dims<ReduceKind::All>),
    GL_LOWER("any", "dims", truth_dims<ReduceKind::Any>),
    GL_LOWER("all", "dims", truth_dims<ReduceKind::All>),
    GL_LOWER("var", "correction", var<false>),
    GL_LOWER("std", "correction", var<true>),
    GL_LOWER("var_mean", "correction", var_mean<false>),
    GL_LOWER("std_mean", "correction", var_mean<true>),
    GL_LOWER("_softmax", "default", softmax),
    GL_LOWER("_safe_softmax", "default", safe_softmax),
    GL_LOWER("_log_softmax", "default", log_softmax),
    GL_LOWER("logsumexp", "default", log_sum_exp),
    GL_LOWER("_softmax_backward_data", "default", softmax_backward),
    GL_LOWER("_log_softmax_backward_data", "default", log_softmax_backward),
};

}  // namespace

std::span<const LowerRow> lower_reductions_rows() { return kLowerReductions; }

}  // namespace graphlift::codegen
