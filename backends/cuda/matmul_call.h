// Owns: matrix products of graphs on a GPU: mm, addmm, bmm, baddbmm on memory with any strides, with what stands behind
// them. Must not: choose between implementations (matmul.h, matmul_tuning.h).
#pragma once

#include "backends/codegen/fuse.h"
#include "backends/cuda/stopwatch.h"
#include "backends/reference/program.h"

namespace graphlift::cuda {

// Whether a call is a product that the library takes, or may take once its sizes are known.
bool is_matmul(const ir::Node& node, int8_t device_type);

// Whether a product's calls may be one: as measured, or else as is known to win. `leaves`: the chain's result is an
// output of the graph, and read by none of its calls.
codegen::Finish finish_matmul(const codegen::Chain& chain, int kept, bool leaves, Tuning tuning);

// Measured or not: see matmul_tuning.h.
std::unique_ptr<reference::NativeCall> make_matmul_call(const codegen::NativeOperation& operation, Tuning tuning);

}  // namespace graphlift::cuda
