// Owns: rows that read by index tensors. Must not: hold writes (scattering.cpp) or sizes that depend on data.
#include <algorithm>

#include "ops/advanced_index.h"
#include "ops/family.h"
#include "ops/iterator.h"
#include "ops/results.h"

namespace graphlift::ops {

using ir::Dims;
using ir::DType;
using ir::ShapeEnv;
using ir::Sym;
using ir::TensorType;

bool is_index_dtype(DType dtype) { return dtype == DType::int64 || dtype == DType::int32; }

bool is_cpu_scalar_or_on(const TensorType& type, ir::Device device) {
  return type.device == device || (type.device.is_cpu() && type.rank() == 0);
}

namespace {

// Self with its dims permuted so that the indexed ones come first, unless they are adjacent.
void bring_indexed_to_front(TensorType& self, std::vector<const TensorType*>& indices) {
  size_t first = indices.size(), last = 0, count = 0;
  for (size_t i = 0; i < indices.size(); ++i) {
    if (!indices[i]) continue;
    first = std::min(first, i);
    last = i;
    ++count;
  }
  if (last - first + 1 == count) return;
  TensorType moved = self;
  std::vector<const TensorType*> moved_indices;
  size_t to = 0;
  for (bool indexed : {true, false})
    for (size_t i = 0; i < indices.size(); ++i) {
      if ((indices[i] != nullptr) != indexed) continue;
      moved.sizes[to] = self.sizes[i];
      moved.strides[to++] = self.strides[i];
      moved_indices.push_back(indices[i]);
    }
  self = std::move(moved);
  indices = std::move(moved_indices);
}

// `type` expanded to `sizes` and set among `before` and `after` dims of 1.
std::optional<TensorType> indexer(ShapeEnv& env, const TensorType& type, const Dims& sizes, size_t before,
                                  size_t after) {
  TensorType expanded = type;
  expanded.sizes = sizes;
  expanded.strides.assign(sizes.size(), 0);
  const size_t lead = sizes.size() - type.sizes.size();
  for (size_t i = 0; i < type.sizes.size(); ++i)
    if (equal(env, type.sizes[i], sizes[lead + i])) expanded.strides[lead + i] = type.strides[i];
  for (size_t i = lead; i-- > 0;)  // as expand() numbers leading dims of 1
    if (equal(env, sizes[i], 1))
      expanded.strides[i] = i + 1 == sizes.size() ? Sym(1) : sizes[i + 1] * expanded.strides[i + 1];
  Dims shape(before, 1);
  shape.insert(shape.end(), sizes.begin(), sizes.end());
  shape.resize(shape.size() + after, 1);
  auto strides = view_strides(env, expanded, shape);
  expanded.strides = strides ? std::move(*strides) : contiguous(shape);
  expanded.sizes = std::move(shape);
  return expanded;
}

bool readable(const TensorType& self, const std::vector<const TensorType*>& indices) {
  bool any = false;
  for (const TensorType* index : indices) {
    if (!index) continue;
    any = true;
    if (!is_index_dtype(index->dtype) || !(index->device == self.device || index->device.is_cpu())) return false;
  }
  return any && indices.size() <= self.sizes.size();
}

}  // namespace

std::optional<AdvancedIndex> advanced_index(ShapeEnv& env, TensorType self, std::vector<const TensorType*> indices) {
  if (!readable(self, indices)) return std::nullopt;
  Dims replacement;
  for (const TensorType* index : indices) {
    if (!index) continue;
    auto common = broadcast(env, replacement, index->sizes);
    if (!common) return std::nullopt;
    replacement = std::move(*common);
  }
  indices.resize(self.sizes.size());
  bring_indexed_to_front(self, indices);
  size_t before = 0, indexed = 0;
  const bool empty_result = is_empty(env, replacement);
  for (size_t i = 0; i < indices.size(); ++i) {
    if (indices[i] && !empty_result && equal(env, self.sizes[i], 0)) return std::nullopt;
    if (indices[i]) ++indexed;
    if (!indices[i] && indexed == 0) ++before;
  }
  const size_t after = indices.size() - before - indexed;

  AdvancedIndex result;
  result.source = self;
  auto splice = [&](Dims& dims, const Dims& with) {
    auto at = dims.begin() + static_cast<ptrdiff_t>(before);
    at = dims.erase(at, at + static_cast<ptrdiff_t>(indexed));
    dims.insert(at, with.begin(), with.end());
  };
  splice(result.source.sizes, replacement);
  splice(result.source.strides, Dims(replacement.size(), 0));
  for (const TensorType* index : indices) {
    if (!index) continue;
    auto shaped = indexer(env, *index, replacement, before, after);
    if (!shaped) return std::nullopt;
    result.indices.push_back(std::move(*shaped));
  }
  // CUDA's kernel wants one striding for all indices.
  auto differs = [&](const TensorType& index) { return !equal(env, index.strides, result.indices[0].strides); };
  if (!self.device.is_cpu() && std::any_of(result.indices.begin(), result.indices.end(), differs))
    for (TensorType& index : result.indices) index.strides = contiguous(index.sizes);
  return result;
}

namespace {

bool index(ShapeCall& call) {
  const TensorType& self = call.tensor(0);
  auto info = advanced_index(call.env, self, call.tensors(1));
  if (!info) return false;
  std::vector<const TensorType*> operands = {&info->source};
  for (const TensorType& type : info->indices) operands.push_back(&type);
  auto placement = iterate(call.env, operands);
  return placement && give(call, self.dtype, self.device, std::move(placement->sizes), std::move(placement->strides));
}

// self, dim, index.
bool index_select(ShapeCall& call) {
  const TensorType& self = call.tensor(0);
  const TensorType& index = call.tensor(2);
  auto dim = wrap_dim(call.integer(1), self.rank());
  if (!dim || index.rank() > 1 || !is_index_dtype(index.dtype) || index.device != self.device) return false;
  Dims sizes = self.sizes;
  const Sym count = index.rank() == 1 ? index.sizes[0] : Sym(1);
  if (self.rank() > 0) sizes[*dim] = count;
  if (self.rank() == 0 && !equal(call.env, count, 1)) return false;
  return give_contiguous(call, self, std::move(sizes));
}

// self, dim, index, sparse_grad.
bool gather(ShapeCall& call) {
  const TensorType& self = call.tensor(0);
  const TensorType& index = call.tensor(2);
  auto dim = wrap_dim(call.integer(1), self.rank());
  if (!dim || !is_index_dtype(index.dtype) || index.device != self.device) return false;
  if (!is_empty(call.env, index.sizes)) {
    if (std::max(self.rank(), 1) != std::max(index.rank(), 1)) return false;
    for (int i = 0; i < std::min(self.rank(), index.rank()); ++i)
      if (i != *dim && !at_most(call.env, index.sizes[i], self.sizes[i])) return false;
  }
  return give_contiguous(call, self, index.sizes);
}

bool take(ShapeCall& call) {
  const TensorType& index = call.tensor(1);
  return index.dtype == DType::int64 && give_contiguous(call, call.tensor(0), index.sizes);
}

// Boundaries or a sorted sequence, then what is looked up; out_int32 at the given argument.
bool positions(ShapeCall& call, const TensorType* values, size_t out_int32) {
  const ir::Device device = call.is_tensor(0) ? call.tensor(0).device : call.tensor(1).device;
  const DType dtype = call.boolean(out_int32) ? DType::int32 : DType::int64;
  return give_contiguous(call, dtype, device, values ? values->sizes : Dims{});
}
bool searchsorted(ShapeCall& call) { return positions(call, call.optional_tensor(1), 2); }
bool bucketize(ShapeCall& call) { return positions(call, call.optional_tensor(0), 2); }

constexpr OpRow kIndexing[] = {
    GL_OP("index", "Tensor", index),
    GL_OP("_unsafe_index", "Tensor", index),
    GL_OP("index_select", "default", index_select),
    GL_OP("gather", "default", gather),
    GL_OP("take", "default", take),
    GL_OP("searchsorted", "Tensor", searchsorted),
    GL_OP("searchsorted", "Scalar", searchsorted),
    GL_OP("bucketize", "Tensor", bucketize),
};

}  // namespace

std::span<const OpRow> indexing_rows() { return kIndexing; }

}  // namespace graphlift::ops
