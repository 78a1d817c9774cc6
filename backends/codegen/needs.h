// Owns: which primitives have to exist in memory, and which are computed where they are used. Must not: group.
#pragma once

#include <unordered_set>

#include "backends/codegen/lower.h"

namespace graphlift::codegen {

struct Needs {
  std::unordered_set<const TensorNode*> demanded;  // computed nodes that calls or the graph's outputs read as tensors
  std::unordered_set<const TensorNode*> needed;    // all that something reads
  std::unordered_set<const TensorNode*>
      plain;  // in the memory of operands of reshapes and joins: read by other indices
};

Needs find_needs(const ir::Graph& graph, const Lowered& lowered);

// Cheap ones with one large operand at most, and what one reduction reads and nothing else.
std::unordered_set<const TensorNode*> find_inlined(const Lowered& lowered, const Needs& needs);

}  // namespace graphlift::codegen
