// Owns: what calls of kernels share: memory of torch's allocator for results, the stream and the context of a launch.
// Must not: know kernels.
#pragma once

#include <ATen/EmptyTensor.h>
#include <c10/core/Allocator.h>
#include <c10/util/SmallVector.h>

#include <algorithm>
#include <span>

#include "backends/cuda/driver.h"
#include "torch/convert.h"

namespace graphlift::cuda {

inline c10::SmallVector<int64_t, 6> evaluated(const ir::Dims& dims, std::span<const int64_t> symbols) {
  c10::SmallVector<int64_t, 6> values;
  for (const ir::Sym& dim : dims) values.push_back(dim.eval(symbols));
  return values;
}

// Where results and launches go.
struct Place {
  c10::Device device;
  c10::Allocator* allocator;
  c10::DispatchKeySet keys;

  explicit Place(c10::Device on)
      : device(on),
        allocator(c10::GetAllocator(on.type())),
        keys(c10::computeDispatchKey(std::nullopt, std::nullopt, on)) {}

  void* stream() const;  // torch's current one
  // A thread on which torch's runtime did nothing yet has no context.
  void enter_context() const;
};

// Memory of torch's allocator for the device, straight from it.
struct Result {
  c10::ScalarType dtype;
  ir::Dims sizes, strides;
  bool constant;
  c10::SmallVector<int64_t, 6> known_sizes, known_strides;

  explicit Result(const ir::TensorType& type)
      : dtype(torch_layer::to_torch(type.dtype)),
        sizes(type.sizes),
        strides(type.strides),
        constant(ir::is_constant(type.sizes) && ir::is_constant(type.strides)) {
    if (constant) known_sizes = evaluated(sizes, {}), known_strides = evaluated(strides, {});
  }

  at::Tensor allocate(const Place& place, std::span<const int64_t> symbols) const {
    if (constant)
      return at::Tensor(
          at::detail::empty_strided_generic(known_sizes, known_strides, place.allocator, place.keys, dtype));
    return at::Tensor(at::detail::empty_strided_generic(evaluated(sizes, symbols), evaluated(strides, symbols),
                                                        place.allocator, place.keys, dtype));
  }
};

}  // namespace graphlift::cuda
