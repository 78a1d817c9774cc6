// Owns: views that look at their memory just as an earlier value does: alias, detach, a view to the same shape,
// t(t(x)). Must not: touch what outputs are (a detached output is a tensor of its own), or views that flip a conjugate
// or sign bit.
#include <array>

#include "ops/traits.h"
#include "passes/memory.h"
#include "passes/pass.h"

namespace graphlift::passes {
namespace {

// Same memory and geometry, other values.
bool flips_a_bit(ir::Op op) {
  static const std::array<ir::Op, 2> flips = {ir::Op("aten::_conj.default"), ir::Op("aten::_neg_view.default")};
  return op == flips[0] || op == flips[1];
}

// The earliest value in the chain of views that is the same tensor; `value` itself when there is none.
ir::ValueRef same_tensor(const ir::Graph& graph, ir::ValueRef value) {
  ir::ValueRef best = value, at = value;
  const ir::TensorType& type = graph.type(value);
  while (const ir::ValueRef* viewed = ops::viewed_value(*at.node)) {
    if (flips_a_bit(at.node->op)) break;
    at = *viewed;
    if (same_type(graph.type(at), type)) best = at;
  }
  return best;
}

}  // namespace

bool remove_redundant_views(ir::Graph* graph) {
  ValueMap map;
  for (ir::Node& node : graph->nodes()) {
    if (!ops::viewed_value(node)) continue;
    for (int i = 0; i < static_cast<int>(node.outputs.size()); ++i) {
      if (!node.outputs[i]) continue;
      ir::ValueRef value{&node, i}, same = same_tensor(*graph, value);
      if (!(same == value)) map[value] = same;
    }
  }
  if (map.empty() || !replace_in_calls(graph, map)) return false;
  remove_dead_code(graph);
  return true;
}

}  // namespace graphlift::passes
