// Owns: which results of a program's steps may lie in an arena, and how long they are needed. Must not: place them.
#pragma once

#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "backends/reference/arena.h"
#include "backends/reference/program.h"
#include "ir/graph.h"

namespace graphlift::reference {

struct ArenaValue {
  ir::ValueRef value;
  ir::TensorType type;
  ArenaSpan span;
};

// Small results of constant sizes that native calls fill, and that nobody refers to when the program ends, as far as
// the graph and torch's schemas say. `step_of`: the step of each call. `readers`: steps of torch's operators that read
// such results; schemas are not always right, so it is looked at what these answer with, and arenas look again at the
// end of each run.
std::vector<ArenaValue> find_arena_values(const ir::Graph& graph, const std::vector<Step>& steps,
                                          const std::unordered_map<const ir::Node*, int>& step_of,
                                          std::unordered_set<int>* readers);

}  // namespace graphlift::reference
