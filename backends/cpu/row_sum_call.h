// Owns: sums of rows at places that a tensor holds: gradients of embeddings and of indexing, index_add. Must not: take
// rows that don't lie one after another, which torch adds as fast.
#pragma once

#include "backends/codegen/fuse.h"
#include "backends/reference/program.h"

namespace graphlift::cpu {

bool is_row_sum(const ir::Node& node);
// For a call that is one.
std::unique_ptr<reference::NativeCall> make_row_sum_call(const codegen::NativeOperation& operation);

}  // namespace graphlift::cpu
