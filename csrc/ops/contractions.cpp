// Owns: rows of matrix products and distances. Must not: hold attention or convolution.
#include "ops/family.h"
#include "ops/iterator.h"
#include "ops/results.h"

namespace graphlift::ops {
namespace {

using ir::Dims;
using ir::DType;
using ir::Sym;
using ir::TensorType;

bool agree(const TensorType& a, const TensorType& b) { return a.dtype == b.dtype && a.device == b.device; }

// a[..., n, k] with b[..., k, m], both of the given rank; nullopt when they do not fit.
std::optional<Dims> product_sizes(ShapeCall& call, size_t first, int rank) {
  if (!call.is_tensor(first) || !call.is_tensor(first + 1)) return std::nullopt;
  const TensorType& a = call.tensor(first);
  const TensorType& b = call.tensor(first + 1);
  if (a.rank() != rank || b.rank() != rank || !agree(a, b)) return std::nullopt;
  for (int i = 0; i + 2 < rank; ++i)
    if (!equal(call.env, a.sizes[i], b.sizes[i])) return std::nullopt;
  if (!equal(call.env, a.sizes[rank - 1], b.sizes[rank - 2])) return std::nullopt;
  Dims sizes = a.sizes;
  for (int i = 0; i + 2 < rank; ++i)
    if (b.sizes[i].is_constant()) sizes[i] = b.sizes[i];
  sizes.back() = b.sizes.back();
  return sizes;
}

template <int Rank>
bool product_of(ShapeCall& call) {
  auto sizes = product_sizes(call, 0, Rank);
  return sizes && give_contiguous(call, call.tensor(0), std::move(*sizes));
}

// Half precision in, float32 out: CUDA alone.
template <int Rank>
bool product_to_dtype(ShapeCall& call) {
  if (call.tensor(0).device.is_cpu() || !product_of<Rank>(call)) return false;
  call.results[0]->dtype = *call.dtype(2);
  return true;
}

// beta * self + alpha * a @ b: self is expanded to the product.
template <int Rank>
bool add_product(ShapeCall& call) {
  auto sizes = product_sizes(call, 1, Rank);
  if (!sizes || !call.is_tensor(0) || !agree(call.tensor(0), call.tensor(1))) return false;
  auto common = broadcast(call.env, call.tensor(0).sizes, *sizes);
  if (!common || !equal(call.env, *common, *sizes)) return false;
  return give_contiguous(call, call.tensor(0), std::move(*sizes));
}

bool dot(ShapeCall& call) {
  const TensorType& a = call.tensor(0);
  const TensorType& b = call.tensor(1);
  if (a.rank() != 1 || b.rank() != 1 || !agree(a, b) || !equal(call.env, a.sizes, b.sizes)) return false;
  return give_contiguous(call, a, {});
}

bool matrix_vector(ShapeCall& call, size_t first) {
  const TensorType& a = call.tensor(first);
  const TensorType& b = call.tensor(first + 1);
  if (a.rank() != 2 || b.rank() != 1 || !agree(a, b) || !equal(call.env, a.sizes[1], b.sizes[0])) return false;
  return give_contiguous(call, a, {a.sizes[0]});
}
bool mv(ShapeCall& call) { return matrix_vector(call, 0); }
template <bool InPlace = false>
bool addmv(ShapeCall& call) {
  if (!agree(call.tensor(0), call.tensor(1)) || call.tensor(0).rank() > 1) return false;
  if (!matrix_vector(call, 1)) return false;
  const Dims& sizes = call.results[0]->sizes;
  if (equal(call.env, call.tensor(0).sizes, sizes)) return true;
  // Torch's kernel, unlike its shape function, gives beta * self where the matrix has no elements: of self's own size.
  if (!InPlace && is_empty(call.env, call.tensor(1).sizes) && call.real(3) != 0) {
    if (!call.tensor(0).device.is_cpu()) return false;
    call.results.clear();
    return give_contiguous(call, call.tensor(0), call.tensor(0).sizes);
  }
  auto common = broadcast(call.env, call.tensor(0).sizes, sizes);
  return common && equal(call.env, *common, sizes);
}

// The batch is summed over.
bool addbmm(ShapeCall& call) {
  auto sizes = product_sizes(call, 1, 3);
  if (!sizes || !agree(call.tensor(0), call.tensor(1))) return false;
  sizes->erase(sizes->begin());
  auto common = broadcast(call.env, call.tensor(0).sizes, *sizes);
  return common && equal(call.env, *common, *sizes) && give_contiguous(call, call.tensor(0), std::move(*sizes));
}

// Rows (or batches) of one operand are grouped by offsets. The row stride is rounded up to 16 bytes.
bool grouped_mm(ShapeCall& call) {
  const TensorType& a = call.tensor(0);
  const TensorType& b = call.tensor(1);
  if (!agree(a, b) || !call.none(3) || a.rank() < 2 || a.rank() > 3 || b.rank() < 2 || b.rank() > 3) return false;
  const bool offsets = call.is_tensor(2);
  if (offsets == (a.rank() == 3 && b.rank() == 3)) return false;
  if (!equal(call.env, a.sizes.back(), b.sizes[b.rank() - 2])) return false;
  const DType dtype = call.dtype(4).value_or(a.dtype);
  Dims sizes;
  if (a.rank() == 2 && b.rank() == 2) {
    sizes = {call.tensor(2).sizes[0], a.sizes[0], b.sizes[1]};
  } else if (a.rank() == 2) {
    if (!equal(call.env, b.sizes[0], call.tensor(2).sizes[0])) return false;
    sizes = {a.sizes[0], b.sizes[2]};
  } else if (b.rank() == 2) {
    if (!equal(call.env, a.sizes[0], call.tensor(2).sizes[0])) return false;
    sizes = {a.sizes[1], b.sizes[1]};
  } else {
    if (!equal(call.env, a.sizes[0], b.sizes[0])) return false;
    sizes = {a.sizes[0], a.sizes[1], b.sizes[2]};
  }
  if (a.device.is_cpu()) return give_contiguous(call, dtype, a.device, std::move(sizes));
  const Sym alignment = 16 / ir::bytes(dtype);
  const Sym row = ceildiv(sizes.back(), alignment) * alignment;
  Dims strides = {row, 1};
  if (sizes.size() == 3) strides.insert(strides.begin(), sizes[1] * row);
  return give(call, dtype, a.device, std::move(sizes), std::move(strides));
}

bool cdist(ShapeCall& call) {
  const TensorType& a = call.tensor(0);
  const TensorType& b = call.tensor(1);
  if (a.rank() < 2 || b.rank() < 2 || !agree(a, b) || !equal(call.env, a.sizes.back(), b.sizes.back())) return false;
  auto sizes = broadcast(call.env, Dims(a.sizes.begin(), a.sizes.end() - 2), Dims(b.sizes.begin(), b.sizes.end() - 2));
  if (!sizes) return false;
  sizes->push_back(a.sizes[a.rank() - 2]);
  sizes->push_back(b.sizes[b.rank() - 2]);
  return give_contiguous(call, a, std::move(*sizes));
}

// grad, x1, x2, p, cdist.
bool cdist_backward(ShapeCall& call) {
  const TensorType& a = call.tensor(1);
  const TensorType& b = call.tensor(2);
  if (a.rank() < 2 || b.rank() < 2) return false;
  auto batch = broadcast(call.env, Dims(a.sizes.begin(), a.sizes.end() - 2), Dims(b.sizes.begin(), b.sizes.end() - 2));
  if (!batch) return false;
  batch->insert(batch->end(), a.sizes.end() - 2, a.sizes.end());
  return give_contiguous(call, a, std::move(*batch));
}

constexpr OpRow kContractions[] = {
    GL_OP("mm", "default", product_of<2>),
    GL_OP("mm", "dtype", product_to_dtype<2>),
    GL_OP("bmm", "default", product_of<3>),
    GL_OP("bmm", "dtype", product_to_dtype<3>),
    GL_BOTH("addmm", "default", add_product<2>),
    GL_OP("_addmm_activation", "default", add_product<2>),
    GL_BOTH("baddbmm", "default", add_product<3>),
    GL_BOTH("addbmm", "default", addbmm),
    GL_OP("addmv", "default", addmv),
    GL_OP("addmv_", "default", in_place<addmv<true>>),
    GL_OP("mv", "default", mv),
    GL_OP("dot", "default", dot),
    GL_OP("vdot", "default", dot),
    GL_OP("_grouped_mm", "default", grouped_mm),
    GL_OP("_cdist_forward", "default", cdist),
    GL_OP("_cdist_backward", "default", cdist_backward),
};

}  // namespace

std::span<const OpRow> contractions_rows() { return kContractions; }

}  // namespace graphlift::ops
