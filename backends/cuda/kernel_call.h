// Owns: running a compiled kernel on tensors: memory for results, arguments, launches. Must not: compile ahead.
#pragma once

#include "backends/codegen/fuse.h"
#include "backends/cuda/compiled_kernel.h"
#include "backends/reference/program.h"

namespace graphlift::cuda {

// For a `graphlift::kernel` node.
std::unique_ptr<reference::NativeCall> make_kernel_call(const ir::Node& node, const codegen::KernelMemory& memory,
                                                        std::shared_ptr<const CompiledKernel> kernel);

// For a `graphlift::kernels` node.
std::unique_ptr<reference::NativeCall> make_multi_kernel_call(const ir::Node& node, const codegen::FusedGraph& fused,
                                                              std::shared_ptr<const CompiledKernel> program);

}  // namespace graphlift::cuda
