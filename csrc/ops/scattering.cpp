// Owns: rows that write by index tensors. Must not: hold reads (indexing.cpp).
#include "ops/advanced_index.h"
#include "ops/family.h"
#include "ops/iterator.h"
#include "ops/results.h"

namespace graphlift::ops {
namespace {

using ir::Dims;
using ir::DType;
using ir::TensorType;

bool all_at_most(ShapeCall& call, const TensorType& index, const TensorType& other, int except) {
  if (std::max(index.rank(), 1) != std::max(other.rank(), 1)) return false;
  for (int i = 0; i < std::min(index.rank(), other.rank()); ++i)
    if (i != except && !at_most(call.env, index.sizes[i], other.sizes[i])) return false;
  return true;
}

// self, dim, index, src or value, ...
bool scatter(ShapeCall& call) {
  const TensorType& self = call.tensor(0);
  const TensorType& index = call.tensor(2);
  auto dim = wrap_dim(call.integer(1), self.rank());
  if (!dim || !is_index_dtype(index.dtype) || index.device != self.device) return false;
  if (!is_empty(call.env, index.sizes) && !all_at_most(call, index, self, *dim)) return false;
  if (const TensorType* source = call.optional_tensor(3)) {
    if (source->dtype != self.dtype || source->device != self.device) return false;
    if (!is_empty(call.env, index.sizes) && !all_at_most(call, index, *source, -1)) return false;
  }
  return give_contiguous(call, self, self.sizes);
}

// self, dim, index, source, ...: the index is one-dimensional and chooses slices.
bool index_add(ShapeCall& call) {
  const TensorType& self = call.tensor(0);
  const TensorType& index = call.tensor(2);
  const TensorType& source = call.tensor(3);
  auto dim = wrap_dim(call.integer(1), self.rank());
  if (!dim || index.rank() > 1 || !is_index_dtype(index.dtype) || source.dtype != self.dtype) return false;
  if (source.rank() != self.rank() || index.device != self.device || source.device != self.device) return false;
  for (int i = 0; i < self.rank(); ++i) {
    const ir::Sym count = i != *dim ? self.sizes[i] : index.rank() == 1 ? index.sizes[0] : ir::Sym(1);
    if (!equal(call.env, source.sizes[i], count)) return false;
  }
  return give_contiguous(call, self, self.sizes);
}

// self, dim, index, value.
bool index_fill(ShapeCall& call) {
  const TensorType& self = call.tensor(0);
  const TensorType& index = call.tensor(2);
  if (!wrap_dim(call.integer(1), self.rank()) || index.rank() > 1 || index.dtype != DType::int64) return false;
  if (call.is_tensor(3) && call.tensor(3).rank() != 0) return false;
  return give_preserved(call, self, self.dtype);
}

bool is_mask(const TensorType* index) {
  return index && (index->dtype == DType::bool_ || index->dtype == DType::uint8);
}

// One mask over the first dims, and a value that fits any number of places.
bool put_by_mask(ShapeCall& call, const TensorType& mask) {
  const TensorType& self = call.tensor(0);
  const TensorType* value = call.optional_tensor(2);
  if (call.tensors(1).size() != 1 || mask.rank() == 0 || mask.rank() > self.rank()) return false;
  if (value && (value->rank() != 0 || value->dtype != self.dtype)) return false;
  const Dims masked(self.sizes.begin(), self.sizes.begin() + mask.rank());
  return mask.device == self.device && equal(call.env, masked, mask.sizes) && give_preserved(call, self, self.dtype);
}

// self, indices, values, accumulate.
bool index_put(ShapeCall& call) {
  const TensorType& self = call.tensor(0);
  for (const TensorType* index : call.tensors(1))
    if (is_mask(index)) return put_by_mask(call, *index);
  auto info = advanced_index(call.env, self, call.tensors(1));
  if (!info) return false;
  if (const TensorType* values = call.optional_tensor(2)) {
    if (values->dtype != self.dtype || !is_cpu_scalar_or_on(*values, self.device)) return false;
    Dims sizes = info->source.sizes;
    auto common = broadcast(call.env, sizes, values->sizes);
    if (!common || !equal(call.env, *common, sizes)) return false;
  }
  return give_preserved(call, self, self.dtype);
}

bool index_put_in_place(ShapeCall& call) {
  if (!index_put(call)) return false;
  call.results[0] = call.tensor(0);
  return true;
}

// self, mask, source: the number of elements of source is checked at run time.
bool masked_scatter(ShapeCall& call) {
  const TensorType& self = call.tensor(0);
  const TensorType& mask = call.tensor(1);
  if (mask.dtype != DType::bool_ || call.tensor(2).dtype != self.dtype) return false;
  auto sizes = broadcast(call.env, self.sizes, mask.sizes);
  return sizes && give_contiguous(call, self, std::move(*sizes));
}

bool put(ShapeCall& call) {
  if (call.tensor(1).dtype != DType::int64 || call.tensor(2).dtype != call.tensor(0).dtype) return false;
  return give_preserved(call, call.tensor(0), call.tensor(0).dtype);
}

constexpr OpRow kScattering[] = {
    GL_BOTH("scatter", "src", scatter),
    GL_BOTH("scatter", "value", scatter),
    GL_BOTH("scatter", "reduce", scatter),
    GL_BOTH("scatter", "value_reduce", scatter),
    GL_BOTH("scatter_add", "default", scatter),
    GL_BOTH("scatter_reduce", "two", scatter),
    GL_BOTH("index_add", "default", index_add),
    GL_BOTH("index_copy", "default", index_add),
    GL_BOTH("index_reduce", "default", index_add),
    GL_BOTH("index_fill", "int_Scalar", index_fill),
    GL_BOTH("index_fill", "int_Tensor", index_fill),
    GL_OP("index_put", "default", index_put),
    GL_OP("index_put_", "default", index_put_in_place),
    GL_OP("_unsafe_index_put", "default", index_put),
    GL_BOTH("masked_scatter", "default", masked_scatter),
    GL_BOTH("put", "default", put),
};

}  // namespace

std::span<const OpRow> scattering_rows() { return kScattering; }

}  // namespace graphlift::ops
