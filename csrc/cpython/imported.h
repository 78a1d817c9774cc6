// Owns: objects found by module and name. Must not: be evaluated by anyone: importing runs Python code of its own.
#pragma once

#include "base/ref.h"

namespace graphlift::cpython {

// "EnumType" of "enum", "Variable._execution_engine" of "torch.autograd.variable". Null with a Python error.
Ref imported(const char* module, const char* path);

}  // namespace graphlift::cpython
