// Owns: rows that put tensors together or repeat, shift and mirror one: cat, stack, repeat, roll, flip, tril. Must not:
// pad.
#include "ops/family.h"
#include "ops/iterator.h"
#include "ops/results.h"

namespace graphlift::ops {
namespace {

using ir::Dims;
using ir::DType;
using ir::Sym;
using ir::TensorType;

std::optional<TensorType> common_type(ShapeCall& call, const std::vector<const TensorType*>& tensors) {
  ResultType promotion(call.default_dtype);
  for (const TensorType* type : tensors) {
    if (!type || type->device != tensors[0]->device) return std::nullopt;
    promotion.add(*type);
  }
  auto dtype = promotion.get();
  if (!dtype) return std::nullopt;
  TensorType result = *tensors[0];
  result.dtype = *dtype;
  return result;
}

// The format that all tensors have, else contiguous.
Format shared_format(ShapeCall& call, const std::vector<const TensorType*>& tensors) {
  const Format format = suggest_format(call.env, *tensors[0]);
  for (const TensorType* type : tensors)
    if (suggest_format(call.env, *type) != format) return Format::Contiguous;
  return format;
}

bool is_legacy_empty(const TensorType& type) {
  return type.rank() == 1 && type.sizes[0].is_constant() && type.sizes[0].constant() == 0;
}

bool cat(ShapeCall& call) {
  const auto tensors = call.tensors(0);
  if (tensors.empty()) return false;
  auto type = common_type(call, tensors);
  if (!type) return false;
  const TensorType* model = nullptr;
  for (const TensorType* piece : tensors)
    if (!model && !is_legacy_empty(*piece)) model = piece;
  if (!model) return give_contiguous(call, *type, {0});
  auto dim = wrap_dim(call.integer(1), model->rank());
  if (!dim || model->rank() == 0) return false;
  Dims sizes = model->sizes;
  sizes[*dim] = 0;
  for (const TensorType* piece : tensors) {
    if (is_legacy_empty(*piece)) continue;
    if (piece->rank() != model->rank()) return false;
    for (int i = 0; i < model->rank(); ++i) {
      if (i == *dim) continue;
      if (!equal(call.env, piece->sizes[i], sizes[i])) return false;
      if (piece->sizes[i].is_constant()) sizes[i] = piece->sizes[i];
    }
    sizes[*dim] = sizes[*dim] + piece->sizes[*dim];
  }
  return give_format(call, *type, std::move(sizes), shared_format(call, tensors));
}

// Along an old dim it is cat, seen with that dim split; behind the last one it is cat of unsqueezed tensors.
bool stack(ShapeCall& call) {
  auto tensors = call.tensors(0);
  if (tensors.empty()) return false;
  auto type = common_type(call, tensors);
  const int rank = tensors[0]->rank();
  auto dim = wrap_dim(call.integer(1), rank + 1);
  if (!type || !dim) return false;
  for (const TensorType* piece : tensors)
    if (!equal(call.env, piece->sizes, tensors[0]->sizes)) return false;
  const int64_t count = static_cast<int64_t>(tensors.size());
  if (*dim < rank) {
    type->strides.clear();
    Dims joined = tensors[0]->sizes;
    joined[*dim] = joined[*dim] * Sym(count);
    type->strides = strides_for(joined, shared_format(call, tensors));
    type->sizes = std::move(joined);
    Dims sizes = tensors[0]->sizes;
    sizes.insert(sizes.begin() + *dim, count);
    auto strides = view_strides(call.env, *type, sizes);
    return strides && give(call, type->dtype, type->device, std::move(sizes), std::move(*strides));
  }
  std::vector<TensorType> columns;
  for (const TensorType* piece : tensors) {
    columns.push_back(*piece);
    columns.back().sizes.push_back(1);
    columns.back().strides.push_back(1);
  }
  for (size_t i = 0; i < columns.size(); ++i) tensors[i] = &columns[i];
  Dims sizes = tensors[0]->sizes;
  sizes.back() = count;
  return give_format(call, *type, std::move(sizes), shared_format(call, tensors));
}

bool repeat(ShapeCall& call) {
  const TensorType& self = call.tensor(0);
  const Dims repeats = call.syms(1);
  if (repeats.size() < self.sizes.size()) return false;
  Dims sizes = repeats;
  const size_t lead = repeats.size() - self.sizes.size();
  for (size_t i = 0; i < repeats.size(); ++i) {
    if (less(call.env, repeats[i], 0)) return false;
    if (i >= lead) sizes[i] = repeats[i] * self.sizes[i - lead];
  }
  return give_contiguous(call, self, std::move(sizes));
}

// On CPU a roll is cat of two pieces, and an empty piece has no format; elsewhere the result is contiguous.
Dims rolled_strides(ShapeCall& call, const TensorType& type, int dim, const Sym& shift) {
  if (!type.device.is_cpu()) return contiguous(type.sizes);
  if (is_empty(call.env, type.sizes)) return preserved_strides(call.env, type);
  const Sym first = mod(shift, type.sizes[dim]);
  if (equal(call.env, first, 0)) return contiguous(type.sizes);
  TensorType head = type, tail = type;
  head.sizes[dim] = first;
  tail.sizes[dim] = type.sizes[dim] - first;
  return strides_for(type.sizes, shared_format(call, {&head, &tail}));
}

// self, shifts, dims.
bool roll(ShapeCall& call) {
  const TensorType& self = call.tensor(0);
  const auto dims = call.integers(2);
  if (!dims.empty() && dims.size() != call.syms(1).size()) return false;
  TensorType type = self;
  type.offset = 0;
  const Dims shifts = call.syms(1);
  if (dims.empty()) type.strides = contiguous(type.sizes);
  for (size_t i = 0; i < dims.size(); ++i) {
    auto dim = wrap_dim(dims[i], self.rank());
    if (!dim || self.rank() == 0) return false;
    type.strides = rolled_strides(call, type, *dim, shifts[i]);
  }
  return give(call, std::move(type));
}

bool flip(ShapeCall& call) {
  const TensorType& self = call.tensor(0);
  return dim_mask(call.integers(1), self.rank(), false) && give_preserved(call, self, self.dtype);
}

// self, diagonal.
bool triangle(ShapeCall& call) {
  const TensorType& self = call.tensor(0);
  return self.rank() >= 2 && give_contiguous(call, self, self.sizes);
}

// self, dim: halves of `dim`.
bool glu(ShapeCall& call) {
  const TensorType& self = call.tensor(0);
  auto dim = wrap_dim(call.integer(1), self.rank());
  if (!dim || self.rank() == 0 || !ir::is_floating(self.dtype)) return false;
  if (!equal(call.env, mod(self.sizes[*dim], 2), 0)) return false;
  TensorType half = self;
  half.sizes[*dim] = floordiv(self.sizes[*dim], 2);
  const TensorType* operands[] = {&half, &half};
  auto placement = iterate(call.env, operands);
  return placement && give(call, self.dtype, self.device, placement->sizes, placement->strides);
}

// grad, self, dim.
bool glu_backward(ShapeCall& call) { return give_contiguous(call, call.tensor(1), call.tensor(1).sizes); }

constexpr OpRow kJoining[] = {
    GL_OP("cat", "default", cat),
    GL_OP("stack", "default", stack),
    GL_OP("repeat", "default", repeat),
    GL_OP("roll", "default", roll),
    GL_OP("flip", "default", flip),
    GL_BOTH("tril", "default", triangle),
    GL_BOTH("triu", "default", triangle),
    GL_OP("glu", "default", glu),
    GL_OP("glu_backward", "default", glu_backward),
};

}  // namespace

std::span<const OpRow> joining_rows() { return kJoining; }

}  // namespace graphlift::ops
