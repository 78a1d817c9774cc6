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

int64_t ResultLayout::bytes() const {
  return static_cast<int64_t>(at::detail::computeStorageNbytes(sizes_, strides_, c10::elementSize(dtype_)));
}

at::Tensor ResultLayout::within(const at::Tensor& block, int64_t begin) const {
  at::Tensor made = at::detail::make_tensor<c10::TensorImpl>(
      c10::Storage(block.storage()), c10::DispatchKeySet(c10::DispatchKey::CPU), c10::scalarTypeToTypeMeta(dtype_));
  c10::TensorImpl* impl = made.unsafeGetTensorImpl();
  impl->set_storage_offset(begin / static_cast<int64_t>(c10::elementSize(dtype_)));
  impl->set_sizes_and_strides(sizes_, strides_);
  return made;
}

}  // namespace graphlift::cpu
