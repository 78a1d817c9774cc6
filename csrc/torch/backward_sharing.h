// Owns: which outputs of a region have backwards that share calls with saved values, as eager's share nodes: eager
// frees such nodes with the first of these backwards, and refuses the second. Must not: run or change a graph.
#pragma once

#include <vector>

#include "ir/graph.h"

namespace graphlift::torch_layer {

struct BackwardSharing {
  // By tangent and tangent: some call depends on both and reads a value of the forward. On itself: it saves anything.
  std::vector<std::vector<bool>> shares;
  // By tangent and saved value: a call that depends on the tangent reads what is made of the value.
  std::vector<std::vector<bool>> reads;
};

// `backward`: inputs are saved values, then tangents.
BackwardSharing backward_sharing(const ir::Graph& backward, size_t saved);

}  // namespace graphlift::torch_layer
