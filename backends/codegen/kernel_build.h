// Owns: the kernel of a group: index arithmetic through views, which memory is read and written. Must not: choose
// loops.
#pragma once

#include "backends/codegen/group.h"
#include "backends/codegen/kernel.h"

namespace graphlift::codegen {

struct BuiltKernel {
  Kernel kernel;
  // What each buffer of the kernel is: nodes that are in memory. Read ones first, then `outputs` written ones.
  std::vector<const TensorNode*> buffers;
  size_t outputs = 0;
  std::vector<PlaceCheck> checks;  // of the places that it reads at
};

BuiltKernel build_kernel(const ir::Graph& graph, const Grouping& grouping, const Group& group);

// How a node lies in memory when it is stored: its value's type in the layout that was chosen, or a contiguous one of
// its compute type.
ir::TensorType stored_type(const ir::Graph& graph, const Grouping& grouping, const TensorNode& node, ir::Device device);

}  // namespace graphlift::codegen
