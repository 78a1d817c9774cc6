// Owns: rows of embedding tables. Must not: hold other indexing.
#include "ops/advanced_index.h"
#include "ops/family.h"
#include "ops/results.h"

namespace graphlift::ops {
namespace {

using ir::Dims;
using ir::DType;
using ir::Sym;
using ir::TensorType;

// weight, indices, padding_idx, scale_grad_by_freq, sparse.
bool embedding(ShapeCall& call) {
  const TensorType& weight = call.tensor(0);
  const TensorType& indices = call.tensor(1);
  if (weight.rank() != 2 || !is_index_dtype(indices.dtype) || weight.device != indices.device) return false;
  Dims sizes = indices.sizes;
  sizes.push_back(weight.sizes[1]);
  return give_contiguous(call, weight, std::move(sizes));
}

// grad, indices, num_weights, padding_idx, scale_grad_by_freq.
bool embedding_backward(ShapeCall& call) {
  const TensorType& grad = call.tensor(0);
  if (grad.rank() == 0 || !is_index_dtype(call.tensor(1).dtype)) return false;
  return give_contiguous(call, grad, {call.sym(2), grad.sizes.back()});
}

constexpr OpRow kEmbedding[] = {
    GL_OP("embedding", "default", embedding),
    GL_OP("embedding_dense_backward", "default", embedding_backward),
};

}  // namespace

std::span<const OpRow> embedding_rows() { return kEmbedding; }

}  // namespace graphlift::ops
