// Owns: how the calls that the backend takes itself are made, beyond what they compute.
#pragma once

#include <cstddef>
#include <vector>

namespace graphlift::cpu {

struct NativeOptions {
  bool tuned = false;         // products are measured (tuning.h)
  std::vector<bool> weights;  // by operand: copies of it may be kept (weight_copies.h)

  bool is_weight(size_t operand) const { return operand < weights.size() && weights[operand]; }
};

}  // namespace graphlift::cpu
