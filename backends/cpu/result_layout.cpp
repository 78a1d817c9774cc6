// Owns: see result_layout.h.
#include "backends/cpu/result_layout.h"

#include <ATen/EmptyTensor.h>

#include "backends/cpu/block_pool.h"

namespace graphlift::cpu {
namespace {

at::Tensor allocate_as(c10::IntArrayRef sizes, c10::IntArrayRef strides, c10::ScalarType dtype) {
  const size_t bytes = at::detail::computeStorageNbytes(sizes, strides, c10::elementSize(dtype));
  if (bytes < kPooledBytes) return at::detail::empty_strided_cpu(sizes, strides, dtype);
  constexpr c10::DispatchKeySet kCpu(c10::DispatchKey::CPU);
  return at::detail::empty_strided_generic(sizes, strides, block_pool(), kCpu, dtype);
}

}  // namespace

at::Tensor ResultLayout::allocate(std::span<const int64_t> symbols) const { return make(symbols, allocate_as); }

}  // namespace graphlift::cpu
