// Owns: in which order of dims values lie that only kernels read. Must not: touch what calls or outputs see.
#pragma once

#include "backends/codegen/group.h"
#include "backends/codegen/needs.h"

namespace graphlift::codegen {

// A stored value lies as most of the memory of its sizes does that its kernel reads or writes besides; eager's strides,
// which it has otherwise, may be those of another operand, and the kernel would touch memory in pieces.
void choose_layouts(const ir::Graph& graph, const Lowered& lowered, const Needs& needs, Grouping* grouping);

}  // namespace graphlift::codegen
