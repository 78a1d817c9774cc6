// Owns: fresh memory for the results of native calls. Must not: know what fills it.
#pragma once

#include "backends/reference/result_layout.h"

namespace graphlift::cpu {

class ResultLayout : public reference::ResultLayout {
 public:
  using reference::ResultLayout::ResultLayout;
  at::Tensor allocate(std::span<const int64_t> symbols) const;
  // Of constant sizes: bytes, and a tensor in the memory of `block` that begins there.
  int64_t bytes() const;
  at::Tensor within(const at::Tensor& block, int64_t begin) const;
};

}  // namespace graphlift::cpu
