// Owns: lowering of operators whose result has a tensor's elements in one piece of it, and others everywhere else:
// padding, the gradients of slices, and scattering into slices; of what turns elements around; and of the patches of an
// image that a convolution multiplies.
#include <algorithm>

#include "backends/codegen/lower_rule.h"
#include "ops/layout.h"

namespace graphlift::codegen {
namespace {

using ir::Dims;
using ir::DType;

// Along `dim`, `count` elements from `start` on.
struct Piece {
  int dim;
  int64_t start, count;
};

// start, end and step as arguments `first` on, as Python takes them; nullopt: not known, empty, or with gaps.
std::optional<Piece> slice_of(LowerCall& call, int dim, const ir::Sym& size, size_t first) {
  if (!size.is_constant() || !ir::is_number(call.node.args[first + 2], 1)) return std::nullopt;
  const int64_t n = size.constant();
  auto bound = [&](size_t i, int64_t otherwise) -> std::optional<int64_t> {
    if (call.none(i)) return otherwise;
    const ir::Sym* given = call.node.args[i].sym();
    if (!given || !given->is_constant()) return std::nullopt;
    const int64_t value = given->constant() < 0 ? given->constant() + n : given->constant();
    return std::clamp<int64_t>(value, 0, n);
  };
  const auto start = bound(first, 0), end = bound(first + 1, n);
  if (!start || !end || *end <= *start) return std::nullopt;
  return Piece{dim, *start, *end - *start};
}

// Lanes run along it: elements elsewhere along it would be read one by one, and torch's copies are faster.
bool is_fastest(const ir::TensorType& type, int dim) { return type.strides[static_cast<size_t>(dim)].same(1); }

// Within the pieces `inside`, which has their sizes (torch would also expand it to them); elsewhere `outside`.
bool place(LowerCall& call, const Expr& inside, const std::vector<Piece>& pieces, const Expr& outside) {
  if (!call.places) return false;
  const Dims& sizes = call.out().sizes;
  Dims whole = sizes;
  for (const Piece& piece : pieces) whole[static_cast<size_t>(piece.dim)] = piece.count;
  if (!ops::same(inside.sizes(), whole)) return false;
  std::vector<Value> places;
  std::vector<int> picks(sizes.size(), -1);
  std::vector<ViewDim> dims;
  for (int i = 0; i < call.out().rank(); ++i) dims.push_back({i});
  std::optional<Expr> within;
  for (const Piece& piece : pieces) {
    if (is_fastest(call.out(), piece.dim)) return false;
    const Expr index(&call.graph, call.graph.iota(sizes, piece.dim));
    const Expr from = index - static_cast<double>(piece.start);
    const Expr here = apply(Prim::And, from >= 0.0, from < static_cast<double>(piece.count));
    within = within ? apply(Prim::And, *within, here) : here;
    picks[static_cast<size_t>(piece.dim)] = static_cast<int>(places.size());
    const Expr nearest = apply(Prim::Min, apply(Prim::Max, from, 0.0), static_cast<double>(piece.count - 1));
    places.push_back(nearest.value());
  }
  if (!within) return call.give(inside);
  const Expr read(&call.graph, call.graph.gather(std::move(places), inside.value(), sizes, picks, dims));
  return call.give(select(*within, read, outside));
}

// One row, plane, ... of the result, of which `inside` has the sizes; `index` is an argument.
bool place_one(LowerCall& call, const Expr& inside, int dim, size_t index, const Expr& outside) {
  const ir::Sym* at = call.node.args[index].sym();
  const ir::Sym& size = call.out().sizes[static_cast<size_t>(dim)];
  Dims row_sizes = call.out().sizes;
  row_sizes.erase(row_sizes.begin() + dim);
  if (!at || !at->is_constant() || !ops::same(inside.sizes(), row_sizes)) return false;
  const ir::Sym place = at->constant() < 0 ? *at + size : *at;
  const Expr row(&call.graph, call.graph.add_dim(inside.value(), dim));
  const Expr along(&call.graph, call.graph.iota(call.out().sizes, dim));
  return call.give(select(apply(Prim::Eq, along, along.number(place)), row, outside));
}

// grad, input_sizes, dim, index.
bool select_backward(LowerCall& call) {
  const Expr grad = call.operand(0, call.out().dtype);
  return place_one(call, grad, call.dim(2, call.out().rank()), 3, grad.number(0.0));
}

// self, src, dim, index.
bool select_scatter(LowerCall& call) {
  const Expr self = call.operand(0, call.out().dtype);
  return place_one(call, call.operand(1, call.out().dtype), call.dim(2, self.rank()), 3, self);
}

// grad, input_sizes, dim, start, end, step.
bool slice_backward(LowerCall& call) {
  const int dim = call.dim(2, call.out().rank());
  const auto piece = slice_of(call, dim, call.out().sizes[static_cast<size_t>(dim)], 3);
  const Expr grad = call.operand(0, call.out().dtype);
  return piece && place(call, grad, {*piece}, grad.number(0.0));
}

// self, src, dim, start, end, step.
bool slice_scatter(LowerCall& call) {
  const int dim = call.dim(2, call.out().rank());
  const auto piece = slice_of(call, dim, call.out().sizes[static_cast<size_t>(dim)], 3);
  const DType dtype = call.out().dtype;
  return piece && place(call, call.operand(1, dtype), {*piece}, call.operand(0, dtype));
}

// self, pad (before and behind, the last dim first), value.
bool constant_pad(LowerCall& call) {
  const Dims pad = call.syms(1), &sizes = call.type(0).sizes;
  if (!ir::is_constant(pad) || !ir::is_constant(sizes) || pad.size() > 2 * sizes.size()) return false;
  std::vector<Piece> pieces;
  for (size_t i = 0; i + 1 < pad.size(); i += 2) {
    const size_t dim = sizes.size() - 1 - i / 2;
    const int64_t n = sizes[dim].constant();
    if (n == 0) return false;
    if (!pad[i].same(0) || !pad[i + 1].same(0)) pieces.push_back({static_cast<int>(dim), pad[i].constant(), n});
  }
  const DType dtype = call.out().dtype;
  return call.fits(2, dtype) && place(call, call.operand(0, dtype), pieces, call.operand(2, dtype));
}

// self, dims.
bool flip(LowerCall& call) {
  const int rank = call.type(0).rank();
  if (call.syms(1).empty()) return call.give(call.tensor(0));
  const std::vector<bool> turned = call.dims(1, rank);
  std::vector<ViewDim> map;
  for (int i = 0; i < rank; ++i) {
    map.push_back({i});
    if (!turned[static_cast<size_t>(i)]) continue;
    if (is_fastest(call.type(0), i)) return false;
    map.back().start = call.type(0).sizes[static_cast<size_t>(i)] - 1;
    map.back().step = -1;
  }
  return call.give({&call.graph, call.graph.view(call.tensor(0).value(), call.out().sizes, std::move(map))});
}

// The places along a dim of an image that patches have, and which of them lie in it. `at` dim of the result: which
// patch; `in`: which element of it, beyond `extent` none.
struct PatchDim {
  int at, in;
  int64_t extent, stride, padding, dilation;
};

Expr in_patch(LowerCall& call, const PatchDim& dim, const ir::Sym& size, Value* place) {
  const Dims& sizes = call.out().sizes;
  const Expr patch(&call.graph, call.graph.iota(sizes, dim.at)), element(&call.graph, call.graph.iota(sizes, dim.in));
  const auto last = static_cast<double>(size.constant() - 1);
  const Expr from = patch * static_cast<double>(dim.stride) + element * static_cast<double>(dim.dilation) -
                    static_cast<double>(dim.padding);
  Expr here = apply(Prim::And, from >= 0.0, from <= last);
  if (!sizes[static_cast<size_t>(dim.in)].same(dim.extent))
    here = apply(Prim::And, here, element < static_cast<double>(dim.extent));
  *place = apply(Prim::Min, apply(Prim::Max, from, 0.0), last).value();
  return here;
}

// image (batch, channels, height, width), then of height and width: elements of a patch, stride, padding, dilation.
// Result: batch, patches down and across, their elements down and across, channels; the last two with zeros behind.
bool columns(LowerCall& call) {
  if (!call.places || !ir::is_constant(call.type(0).sizes) || !ir::is_constant(call.out().sizes)) return false;
  const Dims &sizes = call.out().sizes, &image = call.type(0).sizes;
  const Dims extent = call.syms(1), stride = call.syms(2), padding = call.syms(3), dilation = call.syms(4);
  std::vector<Value> places(2);
  std::optional<Expr> within;
  for (size_t i = 0; i < 2; ++i) {
    const PatchDim dim{static_cast<int>(1 + i), static_cast<int>(3 + i), extent[i].constant(),
                       stride[i].constant(),    padding[i].constant(),   dilation[i].constant()};
    const Expr here = in_patch(call, dim, image[2 + i], &places[i]);
    within = within ? apply(Prim::And, *within, here) : here;
  }
  std::vector<int> picks = {-1, -1, 0, 1};
  if (!ops::same(Dims{sizes[5]}, Dims{image[1]})) {
    const Expr channel(&call.graph, call.graph.iota(sizes, 5));
    const auto count = static_cast<double>(image[1].constant());
    within = apply(Prim::And, *within, channel < count);
    picks[1] = static_cast<int>(places.size());
    places.push_back(apply(Prim::Min, channel, count - 1).value());
  }
  const std::vector<ViewDim> dims = {{0}, {5}, {}, {}};
  const Expr read(&call.graph, call.graph.gather(std::move(places), call.tensor(0).value(), sizes, picks, dims));
  return call.give(select(*within, read, read.number(0.0)));
}

constexpr LowerRow kLowerPieces[] = {
    {"graphlift::columns.default", columns},
    GL_LOWER("select_backward", "default", select_backward),
    GL_LOWER("select_scatter", "default", select_scatter),
    GL_LOWER("slice_backward", "default", slice_backward),
    GL_LOWER("slice_scatter", "default", slice_scatter),
    GL_LOWER("constant_pad_nd", "default", constant_pad),
    GL_LOWER("flip", "default", flip),
};

}  // namespace

std::span<const LowerRow> lower_pieces_rows() { return kLowerPieces; }

}  // namespace graphlift::codegen
