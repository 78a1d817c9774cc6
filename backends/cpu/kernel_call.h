// Owns: running a compiled kernel on tensors. Must not: compile.
#pragma once

#include "backends/codegen/fuse.h"
#include "backends/cpu/jit.h"
#include "backends/reference/program.h"

namespace graphlift::cpu {

// For a `graphlift::kernel` node.
// Elements for one thread that are worth waking another one.
int64_t thread_elements(double element_work);

std::unique_ptr<reference::NativeCall> make_kernel_call(const ir::Node& node, const codegen::KernelMemory& memory,
                                                        std::shared_ptr<const CompiledKernel> kernel);

}  // namespace graphlift::cpu
