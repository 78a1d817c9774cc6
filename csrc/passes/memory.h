// Owns: which memory a graph writes in place and which leaves it through outputs, for passes that merge or forward
// values. Must not: change graphs.
#pragma once

#include <unordered_map>
#include <unordered_set>

#include "ir/graph.h"

namespace graphlift::passes {

using ValueSet = std::unordered_set<ir::ValueRef, ir::ValueHash>;
using ValueMap = std::unordered_map<ir::ValueRef, ir::ValueRef, ir::ValueHash>;

class Memory {
 public:
  explicit Memory(const ir::Graph& graph);

  bool is_output(ir::ValueRef value) const { return outputs_.count(value) != 0; }
  // Its memory is that of some output.
  bool escapes(ir::ValueRef value) const;
  // Some call writes its memory in place, or may do so.
  bool is_written(ir::ValueRef value) const;

 private:
  ValueSet outputs_, escaping_, written_;  // the latter two: owners of memory
};

// Puts map[value] for each value in the arguments of all calls; outputs stay. True: there was one.
bool replace_in_calls(ir::Graph* graph, const ValueMap& map);

// Same dtype, device and geometry; requires_grad says nothing of values.
bool same_type(const ir::TensorType& a, const ir::TensorType& b);

}  // namespace graphlift::passes
