// Owns: what calls of kernels share: memory of torch's allocator for results, their arguments, the stream and the
// context of a launch. Must not: know what is launched.
#pragma once

#include <ATen/EmptyTensor.h>
#include <c10/core/Allocator.h>
#include <c10/util/SmallVector.h>

#include <cstring>
#include <span>

#include "backends/codegen/fuse.h"
#include "backends/cuda/driver.h"
#include "backends/reference/program.h"
#include "backends/reference/result_layout.h"

namespace graphlift::cuda {

// Where results and launches go.
struct Place {
  c10::Device device;
  c10::Allocator* allocator;
  c10::DispatchKeySet keys;

  explicit Place(c10::Device on)
      : device(on),
        allocator(c10::GetAllocator(on.type())),
        keys(c10::computeDispatchKey(std::nullopt, std::nullopt, on)) {}

  // Memory of torch's allocator for the device, straight from it.
  at::Tensor allocate(const reference::ResultLayout& result, std::span<const int64_t> symbols) const {
    return result.make(symbols, [&](c10::IntArrayRef sizes, c10::IntArrayRef strides, c10::ScalarType dtype) {
      return at::Tensor(at::detail::empty_strided_generic(sizes, strides, allocator, keys, dtype));
    });
  }
  void* stream() const;  // torch's current one
  // A thread on which torch's runtime did nothing yet has no context.
  void enter_context() const;
};

// Arguments of a launch, little-endian: a narrow one is read from a slot's first bytes.
using Slots = c10::SmallVector<uint64_t, 64>;

// Where a tensor lies, or the number that it holds.
inline uint64_t slot_of(const at::Tensor& tensor, bool by_value) {
  if (!by_value) return reinterpret_cast<uint64_t>(tensor.const_data_ptr());
  uint64_t slot = 0;
  std::memcpy(&slot, tensor.const_data_ptr(), tensor.element_size());
  return slot;
}

// Makes the results of a kernel and adds its buffers, in order.
inline void put_buffers(const codegen::KernelMemory& memory, const std::vector<bool>& by_value, const Place& place,
                        const reference::ResultLayout* results, std::span<const int64_t> symbols,
                        const at::Tensor* const* inputs, at::Tensor* outputs, Slots* slots) {
  for (size_t i = 0; i < memory.results.size(); ++i) {
    const int target = memory.results[i].target;
    if (target >= 0)
      outputs[i] = reference::to_be_written(*inputs[target]);
    else if (!outputs[i].defined())
      outputs[i] = place.allocate(results[i], symbols);
  }
  for (size_t i = 0; i < memory.reads; ++i) slots->push_back(slot_of(*inputs[i], by_value[i]));
  for (size_t i = 0; i < memory.results.size(); ++i)
    if (memory.results[i].buffer) slots->push_back(slot_of(outputs[i], false));
}

}  // namespace graphlift::cuda
