// Owns: when a reduction across the rows of a group joins it, so that one kernel reads what both need once: the
// gradients of a norm's input, by rows, and of its weight and bias. Must not: choose loops, or know a target.
#pragma once

#include "backends/codegen/group.h"

namespace graphlift::codegen {

// Tries to make a reduction a member, reduced over the axes that the group keeps, or, where no element or row reads the
// reductions that the group has, these. `whole` is the map of the node's operand, `most` the elements of a row at most.
bool join_across(const ir::Graph& graph, const std::unordered_set<const TensorNode*>& inlined, int64_t most,
                 Group* group, Value node, const AxisMap& whole);

// The map of a node that is made of reductions across rows, and can be computed behind all rows.
std::optional<AxisMap> map_behind_rows(const std::unordered_set<const TensorNode*>& inlined, Group* group, Value node);

}  // namespace graphlift::codegen
