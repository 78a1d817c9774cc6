// Owns: running a compiled kernel on tensors. Must not: compile.
#pragma once

#include "backends/codegen/fuse.h"
#include "backends/cpu/jit.h"
#include "backends/reference/program.h"

namespace graphlift::cpu {

// For a `graphlift::kernel` node.
std::unique_ptr<reference::NativeCall> make_kernel_call(const ir::Node& node, const codegen::KernelMemory& memory,
                                                        std::shared_ptr<const CompiledKernel> kernel);

}  // namespace graphlift::cpu
