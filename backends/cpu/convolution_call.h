// Owns: convolutions of graphs and their gradients on memory with any strides. Must not: choose between implementations
// (convolution.h).
#pragma once

#include "backends/codegen/fuse.h"
#include "backends/cpu/native_options.h"
#include "backends/reference/program.h"

namespace graphlift::cpu {

// Whether a call is a convolution, or a gradient of one, that find_convolution() may take.
bool is_convolution(const ir::Node& node);
// Null: nothing here computes it, torch's operator has to.
std::unique_ptr<reference::NativeCall> make_convolution_call(const codegen::NativeOperation& operation,
                                                             const NativeOptions& options);

}  // namespace graphlift::cpu
