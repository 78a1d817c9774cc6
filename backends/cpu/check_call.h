// Owns: checks of places before kernels read at them. Must not: know what reads.
#pragma once

#include "backends/codegen/fuse.h"
#include "backends/reference/program.h"

namespace graphlift::cpu {

std::unique_ptr<reference::NativeCall> make_check_call(const codegen::CheckOperation& operation);

}  // namespace graphlift::cpu
