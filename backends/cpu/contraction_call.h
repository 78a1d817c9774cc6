// Owns: matrix products of graphs as contractions: mm, addmm, bmm, baddbmm on memory with any strides. Must not: choose
// between implementations (contraction_choice.h).
#pragma once

#include "backends/codegen/fuse.h"
#include "backends/cpu/native_options.h"
#include "backends/reference/program.h"

namespace graphlift::cpu {

// Whether a call is a product that find_contraction() may take.
bool is_contraction(const ir::Node& node);
// Null: nothing here computes it, torch's operator has to.
std::unique_ptr<reference::NativeCall> make_contraction_call(const codegen::NativeOperation& operation,
                                                             const NativeOptions& options);

}  // namespace graphlift::cpu
