// Owns: lowering of views and of repeat to index maps. A view without a row is an Alias: its operand
// has to be in memory.
#include "backends/codegen/lower_rule.h"

namespace graphlift::codegen {
namespace {

using ir::Dims;
using ir::Sym;

std::vector<ViewDim> identity(int rank) {
  std::vector<ViewDim> map;
  for (int i = 0; i < rank; ++i) map.push_back({i});
  return map;
}

bool same_elements(LowerCall& call) {
  return call.give({&call.graph, call.graph.reshape(call.tensor(0).value(), call.out().sizes)});
}

bool itself(LowerCall& call) { return call.give(call.tensor(0)); }

bool expand(LowerCall& call) {
  return call.give({&call.graph, call.graph.expand(call.tensor(0).value(), call.out().sizes)});
}

// order[i]: the operand's dim that dim i of the result is.
bool permuted(LowerCall& call, const std::vector<int>& order) {
  std::vector<ViewDim> map(order.size());
  for (size_t i = 0; i < order.size(); ++i) map[static_cast<size_t>(order[i])] = {static_cast<int>(i)};
  return call.give({&call.graph, call.graph.view(call.tensor(0).value(), call.out().sizes, std::move(map))});
}

bool permute(LowerCall& call) {
  const int rank = call.out().rank();
  std::vector<int> order;
  for (const Sym& dim : call.syms(1))
    order.push_back(static_cast<int>(dim.constant() < 0 ? dim.constant() + rank : dim.constant()));
  return permuted(call, order);
}

bool swapped(LowerCall& call, int a, int b) {
  std::vector<int> order;
  for (int i = 0; i < call.out().rank(); ++i) order.push_back(i);
  if (!order.empty()) std::swap(order[static_cast<size_t>(a)], order[static_cast<size_t>(b)]);
  return permuted(call, order);
}

bool transpose(LowerCall& call) {
  const int rank = call.out().rank();
  return rank == 0 ? itself(call) : swapped(call, call.dim(1, rank), call.dim(2, rank));
}

bool t(LowerCall& call) { return call.out().rank() == 2 ? swapped(call, 0, 1) : itself(call); }

// self, dim, start, end, step. The start is the one that the shape rule came to, read off the offset.
bool slice(LowerCall& call) {
  const ir::TensorType& from = call.type(0);
  const int dim = call.dim(1, from.rank());
  const auto at = static_cast<size_t>(dim);
  const Sym moved = call.out().offset - from.offset;
  if (!moved.is_constant() || !from.strides[at].is_constant()) return false;
  const int64_t stride = from.strides[at].constant();
  if (stride == 0 || moved.constant() % stride != 0) return false;
  auto map = identity(from.rank());
  map[at].start = moved.constant() / stride;
  map[at].step = call.sym(4);
  return call.give({&call.graph, call.graph.view(call.tensor(0).value(), call.out().sizes, std::move(map))});
}

// self, dim, index.
bool choose(LowerCall& call) {
  const ir::TensorType& from = call.type(0);
  const int dim = call.dim(1, from.rank());
  Sym index = call.sym(2);
  if (!index.is_constant()) return false;
  if (index.constant() < 0) index = index + from.sizes[static_cast<size_t>(dim)];
  std::vector<ViewDim> map;
  for (int i = 0; i < from.rank(); ++i) {
    if (i == dim)
      map.push_back({-1, index});
    else
      map.push_back({i < dim ? i : i - 1});
  }
  return call.give({&call.graph, call.graph.view(call.tensor(0).value(), call.out().sizes, std::move(map))});
}

// Pieces along a dim, one after another.
bool split(LowerCall& call) {
  const ir::TensorType& from = call.type(0);
  const int dim = call.dim(2, from.rank());
  Sym start = 0;
  for (const auto& piece : call.node.outputs) {
    if (!piece) return false;
    auto map = identity(from.rank());
    map[static_cast<size_t>(dim)].start = start;
    call.give({&call.graph, call.graph.view(call.tensor(0).value(), piece->sizes, std::move(map))});
    start = start + piece->sizes[static_cast<size_t>(dim)];
  }
  return true;
}

bool unbind(LowerCall& call) {
  const ir::TensorType& from = call.type(0);
  const int dim = call.dim(1, from.rank());
  for (size_t piece = 0; piece < call.node.outputs.size(); ++piece) {
    std::vector<ViewDim> map;
    for (int i = 0; i < from.rank(); ++i)
      map.push_back(i == dim ? ViewDim{-1, static_cast<int64_t>(piece)} : ViewDim{i < dim ? i : i - 1});
    call.give({&call.graph, call.graph.view(call.tensor(0).value(), call.node.outputs[piece]->sizes, std::move(map))});
  }
  return true;
}

// self, repeats: [r0*d0, r1*d1] are the elements of [1, d0, 1, d1], expanded to [r0, d0, r1, d1].
bool repeat(LowerCall& call) {
  const Dims repeats = call.syms(1), from = call.type(0).sizes;
  if (!ir::is_constant(from) || !ir::is_constant(repeats)) return false;
  const size_t lead = repeats.size() - from.size();
  Dims apart, whole;
  for (size_t i = 0; i < repeats.size(); ++i) {
    const Sym size = i < lead ? Sym(1) : from[i - lead];
    if (repeats[i].constant() <= 0 || size.same(0)) return false;
    apart.insert(apart.end(), {1, size});
    whole.insert(whole.end(), {repeats[i], size});
  }
  const Value spread = call.graph.expand(call.graph.reshape(call.tensor(0).value(), apart), whole);
  // In memory as it is spread: merged dims of a view would be no index map.
  const Value copied = call.graph.map(Prim::Copy, {spread});
  return call.give({&call.graph, call.graph.reshape(copied, call.out().sizes)});
}

constexpr LowerRow kLowerViews[] = {
    GL_LOWER("view", "default", same_elements),
    GL_LOWER("_unsafe_view", "default", same_elements),
    GL_LOWER("_reshape_alias", "default", same_elements),
    GL_LOWER("alias", "default", itself),
    GL_LOWER("detach", "default", itself),
    GL_LOWER("lift_fresh", "default", itself),
    GL_LOWER("expand", "default", expand),
    GL_LOWER("permute", "default", permute),
    GL_LOWER("transpose", "int", transpose),
    GL_LOWER("t", "default", t),
    GL_LOWER("unsqueeze", "default", same_elements),
    GL_LOWER("squeeze", "default", same_elements),
    GL_LOWER("squeeze", "dim", same_elements),
    GL_LOWER("squeeze", "dims", same_elements),
    GL_LOWER("slice", "Tensor", slice),
    GL_LOWER("select", "int", choose),
    GL_LOWER("split", "Tensor", split),
    GL_LOWER("split_with_sizes", "default", split),
    GL_LOWER("unbind", "int", unbind),
    GL_LOWER("repeat", "default", repeat),
};

}  // namespace

std::span<const LowerRow> lower_views_rows() { return kLowerViews; }

}  // namespace graphlift::codegen
