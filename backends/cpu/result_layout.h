// Owns: fresh memory for the results of native calls. Must not: know what fills it.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/util/SmallVector.h>

#include <span>
#include <vector>

#include "ir/type.h"

namespace graphlift::cpu {

// Sizes and strides of a result: read off once where they are constant.
class ResultLayout {
 public:
  explicit ResultLayout(const ir::TensorType& type);
  at::Tensor allocate(std::span<const int64_t> symbols) const;
  // Of constant sizes: bytes, and a tensor in the memory of `block` that begins there.
  int64_t bytes() const;
  at::Tensor within(const at::Tensor& block, int64_t begin) const;

 private:
  c10::ScalarType dtype_;
  c10::SmallVector<int64_t, 5> sizes_, strides_;
  ir::Dims symbolic_sizes_, symbolic_strides_;  // empty: constant
};

}  // namespace graphlift::cpu
