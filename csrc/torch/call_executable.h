// Owns: a region as a backend runs it that took the program's own calls: autograd and writes are what eager does.
// Must not: compile.
#pragma once

#include <memory>

#include "torch/tracer.h"

namespace graphlift::torch_layer {

// Precondition: traced.calls.
std::unique_ptr<Executable> make_call_executable(Traced traced, const backend::Backend& backend);

}  // namespace graphlift::torch_layer
