// Owns: rows of discrete Fourier transforms. Kernels lay the result out by the strides of what they get, and differ
// between libraries; where all of them give a contiguous one (a contiguous tensor, transformed along its last
// dimensions), it is known here. Must not: guess the others.
#include "ops/family.h"
#include "ops/results.h"

namespace graphlift::ops {
namespace {

using ir::Dims;
using ir::DType;
using ir::Sym;
using ir::TensorType;

// The transformed dimensions, in order; none: they are not the last ones of a contiguous tensor.
std::vector<int64_t> last_dims(ShapeCall& call) {
  const TensorType& self = call.tensor(0);
  std::vector<int64_t> dims = call.integers(1);
  const int64_t first = self.rank() - static_cast<int64_t>(dims.size());
  if (first < 0 || !is_contiguous(call.env, self)) return {};
  for (const Sym& size : self.sizes)  // a size of 1 has any stride
    if (!less(call.env, 1, size)) return {};
  for (size_t i = 0; i < dims.size(); ++i)
    if (dims[i] != first + static_cast<int64_t>(i)) return {};
  return dims;
}

std::optional<DType> complex_for(DType real) {
  if (real == DType::float32) return DType::complex64;
  if (real == DType::float64) return DType::complex128;
  return std::nullopt;
}

std::optional<DType> real_for(DType complex) {
  if (complex == DType::complex64) return DType::float32;
  if (complex == DType::complex128) return DType::float64;
  return std::nullopt;
}

// self, dim, normalization, forward.
bool complex_to_complex(ShapeCall& call) {
  const TensorType& self = call.tensor(0);
  const size_t count = last_dims(call).size();
  if (!real_for(self.dtype) || count == 0 || count > 3) return false;
  return give_contiguous(call, self, self.sizes);
}

// self, dim, normalization, onesided.
bool real_to_complex(ShapeCall& call) {
  const TensorType& self = call.tensor(0);
  const std::optional<DType> dtype = complex_for(self.dtype);
  if (!dtype || last_dims(call).size() != 1 || !self.device.is_cpu()) return false;
  Dims sizes = self.sizes;
  if (call.boolean(3)) sizes.back() = floordiv(sizes.back(), Sym(2)) + Sym(1);
  return give_contiguous(call, *dtype, self.device, std::move(sizes));
}

// self, dim, normalization, last_dim_size.
bool complex_to_real(ShapeCall& call) {
  const TensorType& self = call.tensor(0);
  const std::optional<DType> dtype = real_for(self.dtype);
  if (!dtype || last_dims(call).size() != 1 || !self.device.is_cpu() || !less(call.env, 0, call.sym(3))) return false;
  Dims sizes = self.sizes;
  sizes.back() = call.sym(3);
  return give_contiguous(call, *dtype, self.device, std::move(sizes));
}

constexpr OpRow kSpectral[] = {
    GL_OP("_fft_c2c", "default", complex_to_complex),
    GL_OP("_fft_r2c", "default", real_to_complex),
    GL_OP("_fft_c2r", "default", complex_to_real),
};

}  // namespace

std::span<const OpRow> spectral_rows() { return kSpectral; }

}  // namespace graphlift::ops
