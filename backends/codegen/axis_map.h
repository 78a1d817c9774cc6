// Owns: how dims of one node and axes of a group belong together, through views. Must not: decide what is fused.
#pragma once

#include "backends/codegen/group.h"

namespace graphlift::codegen {

// Replaces an axis by two: the new one, whose extent is `inner`, is the faster. The extent must be a multiple of it.
void split_axis(Group* group, int axis, int64_t inner);

// What the maps of a group say about a node's dims: its own map, or its operand's carried through the view. Axes are
// split where a reshape asks for it. Nullopt: nothing is known, or the view leaves the group's iteration space.
std::optional<PartialMap> pull(Group* group, const Value node, const std::unordered_set<const TensorNode*>& inlined);

// Joins what is known of one node's dims; false when two say different things.
bool unify(PartialMap* into, const PartialMap& from);
// What an operand's map says about the dims of a result of `sizes` that it is broadcast to.
PartialMap broadcast_map(const PartialMap& operand, const ir::Dims& operand_sizes, const ir::Dims& sizes);

}  // namespace graphlift::codegen
