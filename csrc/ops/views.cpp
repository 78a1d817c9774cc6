// Owns: rows of operators whose result shares memory with argument 0. Must not: hold anything that makes fresh memory.
#include "ops/views.h"

#include <algorithm>

#include "ops/family.h"
#include "ops/iterator.h"
#include "ops/known.h"
#include "ops/results.h"

namespace graphlift::ops {

using ir::Dims;
using ir::Relation;
using ir::ShapeEnv;
using ir::Sym;
using ir::TensorType;

bool narrow(ShapeEnv& env, TensorType& type, int dim, Sym start, Sym end, const Sym& step) {
  const Sym size = type.sizes[dim];
  auto clamp = [&](Sym at, const Sym& low) {
    if (less(env, at, 0)) at = at + size;
    if (less(env, at, low)) return low;
    return at_most(env, at, size) ? at : size;
  };
  start = clamp(start, 0);
  end = clamp(end, start);
  if (!less(env, 0, step)) return false;
  const bool unit = step.is_constant() && step.constant() == 1;
  type.offset = type.offset + start * type.strides[dim];
  const Sym length = equal(env, start, end) ? Sym(0) : end - start;
  type.sizes[dim] = unit ? length : ceildiv(length, step);
  type.strides[dim] = type.strides[dim] * step;
  return true;
}

std::optional<Sym> wrap_index(ShapeEnv& env, const Sym& index, const Sym& size) {
  Sym wrapped = less(env, index, 0) ? index + size : index;
  if (less(env, wrapped, 0) || !less(env, wrapped, size)) return std::nullopt;
  return wrapped;
}

bool select(ShapeEnv& env, TensorType& type, int64_t named, const Sym& index) {
  auto dim = wrap_dim(named, type.rank());
  if (!dim || type.rank() == 0) return false;
  auto at = wrap_index(env, index, type.sizes[*dim]);
  if (!at) return false;
  type.offset = type.offset + *at * type.strides[*dim];
  type.sizes.erase(type.sizes.begin() + *dim);
  type.strides.erase(type.strides.begin() + *dim);
  return true;
}

bool slice(ShapeCall& call, TensorType& type, size_t first) {
  auto dim = wrap_dim(call.integer(first), type.rank());
  if (!dim || type.rank() == 0) return false;
  const Sym start = call.none(first + 1) ? Sym(0) : call.sym(first + 1);
  const Sym end = call.none(first + 2) ? type.sizes[*dim] : call.sym(first + 2);
  return narrow(call.env, type, *dim, start, end, call.sym(first + 3));
}

bool diagonal(ShapeEnv& env, TensorType& type, int64_t offset, int64_t first, int64_t second) {
  auto row = wrap_dim(first, type.rank()), column = wrap_dim(second, type.rank());
  if (!row || !column || *row == *column) return false;
  const Sym rows = type.sizes[*row], columns = type.sizes[*column];
  const Sym row_stride = type.strides[*row], column_stride = type.strides[*column];
  const Sym height = offset < 0 ? rows + Sym(offset) : rows, width = offset < 0 ? columns : columns - Sym(offset);
  Sym size = less(env, height, width) ? height : width;
  if (at_most(env, size, 0)) size = 0;
  if (!equal(env, size, 0))
    type.offset = type.offset + (offset < 0 ? Sym(-offset) * row_stride : Sym(offset) * column_stride);
  for (int dim : {std::max(*row, *column), std::min(*row, *column)}) {
    type.sizes.erase(type.sizes.begin() + dim);
    type.strides.erase(type.strides.begin() + dim);
  }
  type.sizes.push_back(size);
  type.strides.push_back(row_stride + column_stride);
  return true;
}

namespace {

bool alias(ShapeCall& call) { return give(call, call.tensor(0)); }

bool view(ShapeCall& call) {
  TensorType type = call.tensor(0);
  auto sizes = infer_sizes(call.env, type.sizes, call.syms(1));
  if (!sizes) return false;
  auto strides = view_strides(call.env, type, *sizes);
  if (!strides) return false;
  type.sizes = std::move(*sizes);
  type.strides = std::move(*strides);
  return give(call, std::move(type));
}

// The same bytes seen as another dtype: the last dim grows or shrinks when elements have another size.
bool view_dtype(ShapeCall& call) {
  TensorType type = call.tensor(0);
  const ir::DType dtype = *call.dtype(1);
  const int from = ir::bytes(type.dtype), to = ir::bytes(dtype);
  type.dtype = dtype;
  if (from == to) return give(call, std::move(type));
  if (type.rank() == 0 || !equal(call.env, type.strides.back(), 1)) return false;
  const Sym ratio = from > to ? from / to : to / from;
  auto convert = [&](const Sym& value) { return from > to ? value * ratio : floordiv(value, ratio); };
  auto fits = [&](const Sym& value) { return from > to || equal(call.env, mod(value, ratio), 0); };
  if (!fits(type.sizes.back()) || !fits(type.offset)) return false;
  for (size_t i = 0; i + 1 < type.strides.size(); ++i) {
    if (!fits(type.strides[i])) return false;
    type.strides[i] = convert(type.strides[i]);
  }
  type.sizes.back() = convert(type.sizes.back());
  type.offset = convert(type.offset);
  return give(call, std::move(type));
}

bool expand(ShapeCall& call) {
  TensorType type = call.tensor(0);
  Dims sizes = call.syms(1);
  if (sizes.size() < type.sizes.size()) return false;
  Dims strides(sizes.size());
  const int lead = static_cast<int>(sizes.size()) - type.rank();
  if (type.rank() == 0) {  // every stride is 0
    type.sizes = sizes;
    type.strides.assign(sizes.size(), 0);
    for (const Sym& size : sizes)
      if (less(call.env, size, 0)) return false;
    return give(call, std::move(type));
  }
  for (int i = static_cast<int>(sizes.size()) - 1; i >= 0; --i) {
    const bool fresh = i < lead;
    const bool last = i + 1 == static_cast<int>(sizes.size());
    const Sym size = fresh ? Sym(1) : type.sizes[i - lead];
    strides[i] = !fresh ? type.strides[i - lead] : last ? Sym(1) : sizes[i + 1] * strides[i + 1];
    if (sizes[i].is_constant() && sizes[i].constant() == -1) {
      if (fresh) return false;
      sizes[i] = size;
    } else if (size.same(1) && !sizes[i].is_constant() && !known_equal(call.env, sizes[i], 1)) {
      if (less(call.env, sizes[i], 0)) return false;
      strides[i] = 0;  // where it is 1 as well, no element is found by it
    } else if (!equal(call.env, size, sizes[i])) {
      if (!equal(call.env, size, 1) || less(call.env, sizes[i], 0)) return false;
      strides[i] = 0;
    }
  }
  type.sizes = std::move(sizes);
  type.strides = std::move(strides);
  return give(call, std::move(type));
}

bool permute(ShapeCall& call) {
  const TensorType& self = call.tensor(0);
  const auto dims = call.integers(1);
  if (static_cast<int>(dims.size()) != self.rank() || !dim_mask(dims, self.rank(), false)) return false;
  TensorType type = self;
  for (size_t i = 0; i < dims.size(); ++i) {
    const int from = *wrap_dim(dims[i], self.rank());
    type.sizes[i] = self.sizes[from];
    type.strides[i] = self.strides[from];
  }
  return give(call, std::move(type));
}

bool swap_dims(ShapeCall& call, int64_t first, int64_t second) {
  TensorType type = call.tensor(0);
  auto a = wrap_dim(first, type.rank()), b = wrap_dim(second, type.rank());
  if (!a || !b) return false;
  if (type.rank() > 0) {
    std::swap(type.sizes[*a], type.sizes[*b]);
    std::swap(type.strides[*a], type.strides[*b]);
  }
  return give(call, std::move(type));
}

bool transpose(ShapeCall& call) { return swap_dims(call, call.integer(1), call.integer(2)); }

bool matrix_transpose(ShapeCall& call) {
  const int rank = call.tensor(0).rank();
  return rank <= 2 && swap_dims(call, 0, rank < 2 ? 0 : 1);
}

bool unsqueeze(ShapeCall& call) {
  TensorType type = call.tensor(0);
  auto dim = wrap_dim(call.integer(1), type.rank() + 1);
  if (!dim) return false;
  const Sym stride = *dim >= type.rank() ? Sym(1) : type.sizes[*dim] * type.strides[*dim];
  type.sizes.insert(type.sizes.begin() + *dim, 1);
  type.strides.insert(type.strides.begin() + *dim, stride);
  return give(call, std::move(type));
}

bool squeeze_where(ShapeCall& call, const std::vector<bool>& mask) {
  const TensorType& self = call.tensor(0);
  TensorType type = self;
  type.sizes.clear();
  type.strides.clear();
  for (int dim = 0; dim < self.rank(); ++dim) {
    if (mask[dim] && equal(call.env, self.sizes[dim], 1)) continue;
    type.sizes.push_back(self.sizes[dim]);
    type.strides.push_back(self.strides[dim]);
  }
  return give(call, std::move(type));
}

bool squeeze(ShapeCall& call) { return squeeze_where(call, std::vector<bool>(call.tensor(0).rank(), true)); }

bool squeeze_dims(ShapeCall& call) {
  auto mask = dim_mask(call.integers(1), call.tensor(0).rank(), false);
  return mask && squeeze_where(call, *mask);
}

bool select_row(ShapeCall& call) {
  TensorType type = call.tensor(0);
  return select(call.env, type, call.integer(1), call.sym(2)) && give(call, std::move(type));
}

bool slice_row(ShapeCall& call) {
  TensorType type = call.tensor(0);
  return slice(call, type, 1) && give(call, std::move(type));
}

// Pieces of the given sizes along `dim`, in order.
bool give_pieces(ShapeCall& call, int dim, const Dims& pieces) {
  Sym start = 0;
  for (const Sym& piece : pieces) {
    TensorType type = call.tensor(0);
    type.offset = type.offset + start * type.strides[dim];
    type.sizes[dim] = piece;
    start = start + piece;
    give(call, std::move(type));
  }
  return true;
}

bool split(ShapeCall& call) {
  const TensorType& self = call.tensor(0);
  auto dim = wrap_dim(call.integer(2), self.rank());
  if (!dim || self.rank() == 0) return false;
  const Sym size = self.sizes[*dim], piece = call.sym(1);
  if (less(call.env, piece, 0)) return false;
  if (equal(call.env, piece, 0)) return equal(call.env, size, 0) && give_pieces(call, *dim, {0});
  if (at_most(call.env, size, piece)) return give_pieces(call, *dim, {size});
  const Sym count = ceildiv(size, piece);
  const int64_t pieces = count.is_constant() ? count.constant() : call.env.specialize(count);
  Dims sizes(static_cast<size_t>(pieces), piece);
  sizes.back() = size - Sym(pieces - 1) * piece;
  return give_pieces(call, *dim, sizes);
}

bool split_with_sizes(ShapeCall& call) {
  const TensorType& self = call.tensor(0);
  auto dim = wrap_dim(call.integer(2), self.rank());
  if (!dim || self.rank() == 0) return false;
  const Dims pieces = call.syms(1);
  Sym sum = 0;
  for (const Sym& piece : pieces) {
    if (less(call.env, piece, 0)) return false;
    sum = sum + piece;
  }
  return equal(call.env, sum, self.sizes[*dim]) && give_pieces(call, *dim, pieces);
}

bool unbind(ShapeCall& call) {
  const TensorType& self = call.tensor(0);
  auto dim = wrap_dim(call.integer(1), self.rank());
  if (!dim || self.rank() == 0) return false;
  const Sym& size = self.sizes[*dim];
  const int64_t count = size.is_constant() ? size.constant() : call.env.specialize(size);
  for (int64_t i = 0; i < count; ++i) {
    TensorType type = self;
    if (!select(call.env, type, *dim, i)) return false;
    give(call, std::move(type));
  }
  return true;
}

bool as_strided(ShapeCall& call) {
  TensorType type = call.tensor(0);
  type.sizes = call.syms(1);
  type.strides = call.syms(2);
  if (type.sizes.size() != type.strides.size()) return false;
  if (!call.none(3)) type.offset = call.sym(3);
  return give(call, std::move(type));
}

bool diagonal_row(ShapeCall& call) {
  TensorType type = call.tensor(0);
  return diagonal(call.env, type, call.integer(1), call.integer(2), call.integer(3)) && give(call, std::move(type));
}

bool unfold(ShapeCall& call) {
  TensorType type = call.tensor(0);
  auto dim = wrap_dim(call.integer(1), type.rank());
  if (!dim || type.rank() == 0) return false;
  const Sym window = call.sym(2), step = call.sym(3);
  if (!at_most(call.env, window, type.sizes[*dim]) || !less(call.env, 0, step) || less(call.env, window, 0))
    return false;
  const Sym stride = type.strides[*dim];
  const bool unit = step.is_constant() && step.constant() == 1;
  const Sym rest = type.sizes[*dim] - window;
  type.sizes[*dim] = (unit ? rest : floordiv(rest, step)) + 1;
  type.strides[*dim] = stride * step;
  type.sizes.push_back(window);
  type.strides.push_back(stride);
  return give(call, std::move(type));
}

bool view_as_real(ShapeCall& call) {
  TensorType type = call.tensor(0);
  if (!ir::is_complex(type.dtype)) return false;
  type.dtype = real_of(type.dtype);
  for (Sym& stride : type.strides) stride = stride * 2;
  type.sizes.push_back(2);
  type.strides.push_back(1);
  type.offset = type.offset * 2;
  return give(call, std::move(type));
}

bool view_as_complex(ShapeCall& call) {
  TensorType type = call.tensor(0);
  if (!ir::is_floating(type.dtype) || type.rank() == 0 || type.dtype == ir::DType::bfloat16) return false;
  if (!equal(call.env, type.sizes.back(), 2) || !equal(call.env, type.strides.back(), 1)) return false;
  type.dtype = complex_of(type.dtype);
  type.sizes.pop_back();
  type.strides.pop_back();
  for (Sym& stride : type.strides) {
    if (!equal(call.env, mod(stride, 2), 0)) return false;
    stride = floordiv(stride, 2);
  }
  if (!equal(call.env, mod(type.offset, 2), 0)) return false;
  type.offset = floordiv(type.offset, 2);
  return give(call, std::move(type));
}

// Operators on views come as fresh copies too: same sizes, contiguous.
template <ShapeRule Rule>
bool copied(ShapeCall& call) {
  if (!Rule(call)) return false;
  for (auto& result : call.results) {
    result->strides = contiguous(result->sizes);
    result->offset = 0;
  }
  return true;
}

// Also as name_copy.
#define VIEW(name, overload, rule) GL_OP(name, overload, rule), GL_OP(name "_copy", overload, copied<rule>)

constexpr OpRow kViews[] = {
    GL_OP("alias", "default", alias),
    GL_OP("detach", "default", alias),
    GL_OP("detach_", "default", alias),
    GL_OP("lift", "default", alias),
    GL_OP("lift_fresh", "default", alias),
    GL_OP("_reshape_alias", "default", as_strided),
    GL_OP("_unsafe_view", "default", view),
    GL_OP("view", "default", view),
    GL_OP("view", "dtype", view_dtype),
    GL_OP("t_", "default", matrix_transpose),
    GL_OP("transpose_", "default", transpose),
    GL_OP("unsqueeze_", "default", unsqueeze),
    GL_OP("squeeze_", "default", squeeze),
    GL_OP("squeeze_", "dim", squeeze_dims),
    GL_OP("squeeze_", "dims", squeeze_dims),
    GL_OP("as_strided_", "default", as_strided),
    GL_OP("as_strided", "default", as_strided),
    VIEW("expand", "default", expand),
    VIEW("permute", "default", permute),
    VIEW("transpose", "int", transpose),
    VIEW("t", "default", matrix_transpose),
    VIEW("unsqueeze", "default", unsqueeze),
    VIEW("squeeze", "default", squeeze),
    VIEW("squeeze", "dim", squeeze_dims),
    VIEW("squeeze", "dims", squeeze_dims),
    VIEW("select", "int", select_row),
    VIEW("slice", "Tensor", slice_row),
    VIEW("split", "Tensor", split),
    VIEW("split_with_sizes", "default", split_with_sizes),
    GL_OP("unsafe_split", "Tensor", split),
    GL_OP("unsafe_split_with_sizes", "default", split_with_sizes),
    VIEW("unbind", "int", unbind),
    VIEW("diagonal", "default", diagonal_row),
    VIEW("unfold", "default", unfold),
    VIEW("view_as_real", "default", view_as_real),
    VIEW("view_as_complex", "default", view_as_complex),
};

}  // namespace

std::span<const OpRow> views_rows() { return kViews; }

}  // namespace graphlift::ops
