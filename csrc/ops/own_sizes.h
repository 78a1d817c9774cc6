// Owns: which operators have results whose size is their kernel's own, and which of them are made for gradients alone.
// Must not: hold shape rules.
#pragma once

#include "ir/graph.h"

namespace graphlift::ops {

// Result `index` has a size that the graph does not know: it goes from kernel to kernel as it is.
bool has_own_size(ir::Op op, int index);
// The kernel makes result `index` where grad mode is on alone, though it is below autograd.
bool is_made_for_gradients(ir::Op op, int index);

}  // namespace graphlift::ops
