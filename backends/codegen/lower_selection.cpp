// Owns: lowering of operators that choose between values: where, masks, bounds, triangles, joining.
#include <limits>

#include "backends/codegen/lower_rule.h"
#include "base/error.h"

namespace graphlift::codegen {
namespace {

using ir::DType;

// condition, self, other.
bool where(LowerCall& call) {
  const DType dtype = call.out().dtype;
  const Expr condition = call.tensor(0);
  if (condition.type() != DType::bool_) return false;
  return call.give(select(condition, call.operand(1, dtype), call.operand(2, dtype)));
}

// self, mask, value. The result has the size of self.
bool masked_fill(LowerCall& call) {
  const DType dtype = call.out().dtype;
  const Expr mask = call.tensor(1);
  if (mask.type() != DType::bool_ || !call.fits(2, dtype)) return false;
  return call.give(select(mask, call.operand(2, dtype), call.operand(0, dtype)));
}

// NaN in self stays; a bound that is NaN gives NaN.
bool bounded(LowerCall& call, int low, int high) {
  const DType dtype = call.out().dtype;
  for (const int bound : {low, high})
    if (bound >= 0 && !call.fits(static_cast<size_t>(bound), dtype)) return false;
  Expr x = call.operand(0, dtype);
  if (low >= 0 && !call.none(static_cast<size_t>(low)))
    x = apply(Prim::Max, x, call.operand(static_cast<size_t>(low), dtype));
  if (high >= 0 && !call.none(static_cast<size_t>(high)))
    x = apply(Prim::Min, x, call.operand(static_cast<size_t>(high), dtype));
  return call.give(x);
}

bool clamp(LowerCall& call) { return bounded(call, 1, 2); }
bool clamp_min(LowerCall& call) { return bounded(call, 1, -1); }
bool clamp_max(LowerCall& call) { return bounded(call, -1, 1); }

// self, diagonal.
template <Prim keep>
bool triangle(LowerCall& call) {
  const Expr x = call.tensor(0);
  const int rank = x.rank();
  auto index = [&](int dim) { return Expr(&call.graph, call.graph.iota(x.sizes(), dim)); };
  const Expr distance = index(rank - 1) - index(rank - 2);
  return call.give(select(apply(keep, distance, distance.number(call.sym(1))), x, x.number(0.0)));
}

// Parts beside each other along a dim of the result, chosen by the place along it, so that what reads the result reads
// the parts.
bool choose_part(LowerCall& call, const ir::ArgList& list, int dim) {
  constexpr size_t kMost = 4;
  if (!call.skips_loads || list.size() < 2 || list.size() > kMost) return false;
  if (call.out().strides[static_cast<size_t>(dim)].same(1)) return false;
  auto part = [&](size_t i) {
    const Value read = call.graph.cast(call.read(*list[i].value()), *compute_type(call.out().dtype));
    return Expr(&call.graph, call.graph.expand(call.graph.add_dim(read, dim), call.out().sizes));
  };
  const Expr place(&call.graph, call.graph.iota(call.out().sizes, dim));
  Expr chosen = part(list.size() - 1);
  for (size_t i = list.size() - 1; i-- > 0;) chosen = select(place == static_cast<double>(i), part(i), chosen);
  return call.give(chosen);
}

// tensors, dim; stacked: along a new one. Where nothing has to be computed torch's copies are as good, and where single
// elements would be written beside each other they are better.
template <bool stacked>
bool concatenate(LowerCall& call) {
  const ir::ArgList* list = call.node.args[0].list();
  bool computed = false;
  for (const ir::Arg& item : *list) computed = computed || memory_of(call.read(*item.value()))->computed();
  const int dim = call.dim(1, call.out().rank());
  if (!computed) return stacked && choose_part(call, *list, dim);
  if (stacked && dim + 1 == call.out().rank()) return false;
  std::vector<Value> values;
  ir::Sym total = 0;
  for (const ir::Arg& item : *list) {
    Value value = call.read(*item.value());
    if (stacked) value = call.graph.add_dim(value, dim);
    if (value->rank() != call.out().rank()) return false;
    const Value typed = call.graph.cast(value, *compute_type(call.out().dtype));
    values.push_back(call.graph.map(Prim::Copy, {typed}));
    values.back()->stored_as = call.out().dtype;
    total = total + value->sizes[static_cast<size_t>(dim)];
  }
  if (!total.same(call.out().sizes[static_cast<size_t>(dim)])) return false;
  return call.give({&call.graph, call.graph.join(std::move(values), dim, call.out().sizes)});
}

constexpr LowerRow kLowerSelection[] = {
    GL_LOWER("where", "self", where),
    GL_LOWER("masked_fill", "Scalar", masked_fill),
    GL_LOWER("masked_fill", "Tensor", masked_fill),
    GL_LOWER("clamp", "default", clamp),
    GL_LOWER("clamp", "Tensor", clamp),
    GL_LOWER("clamp_min", "default", clamp_min),
    GL_LOWER("clamp_min", "Tensor", clamp_min),
    GL_LOWER("clamp_max", "default", clamp_max),
    GL_LOWER("clamp_max", "Tensor", clamp_max),
    GL_LOWER("tril", "default", triangle<Prim::Le>),
    GL_LOWER("triu", "default", triangle<Prim::Ge>),
    GL_LOWER("cat", "default", concatenate<false>),
    GL_LOWER("stack", "default", concatenate<true>),
};

}  // namespace

std::span<const LowerRow> lower_selection_rows() { return kLowerSelection; }

}  // namespace graphlift::codegen
