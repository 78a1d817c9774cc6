// Owns: which calls of small kernels may stand side by side for horizontal fusion, though the graph has others between
// them: what is made of inputs alone goes in front, what nobody reads goes behind. Must not: join them.
#pragma once

#include <string>
#include <vector>

#include "backends/codegen/horizontal.h"

namespace graphlift::codegen {

// The text of the program that a call's kernel is a part of; empty: it is no part of anything.
std::string part_program(const FusedGraph& fused, const ir::Node& node, const HorizontalOptions& options);

// All calls, in an order in which they may run. Calls move only beside others of their program, never past calls that
// write to memory in a way that is not known, and what is made early takes no more than `most_early_bytes`.
std::vector<const ir::Node*> gathered(const FusedGraph& fused, const HorizontalOptions& options);

}  // namespace graphlift::codegen
