// Owns: running a multi-kernel: one walk over the parts' memory, shared between threads by elements. Must not: choose
// which kernels run together.
#pragma once

#include "backends/codegen/fuse.h"
#include "backends/cpu/jit.h"
#include "backends/reference/program.h"

namespace graphlift::cpu {

std::unique_ptr<reference::NativeCall> make_multi_kernel_call(const ir::Node& node, const codegen::FusedGraph& fused,
                                                              std::shared_ptr<const CompiledKernel> program);

}  // namespace graphlift::cpu
