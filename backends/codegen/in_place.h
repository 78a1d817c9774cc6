// Owns: which results of kernels are written into the graph's inputs instead of memory of their own. Must not: know a
// target, beyond that elements of kernels without reductions are read before they are written.
#pragma once

#include "backends/codegen/fuse.h"

namespace graphlift::codegen {

// `writes`: outputs of the graph, and the inputs that their values are copied into behind the run. Where the kernel
// that makes such a value is the last to read the input, and only kernels run behind it, it writes there itself; where
// it reads it too, two of its buffers become one.
void write_in_place(FusedGraph* fused, const std::vector<std::pair<int, int>>& writes);

}  // namespace graphlift::codegen
