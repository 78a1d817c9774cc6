// Owns: fresh memory for the results of native calls. Must not: know what fills it.
#pragma once

#include "backends/reference/result_layout.h"

namespace graphlift::cpu {

class ResultLayout : public reference::ResultLayout {
 public:
  using reference::ResultLayout::ResultLayout;
  at::Tensor allocate(std::span<const int64_t> symbols) const;
};

}  // namespace graphlift::cpu
