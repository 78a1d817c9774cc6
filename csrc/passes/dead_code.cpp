// Owns: dropping calls that nobody reads.
// Must not: drop random draws (they advance the generator), effects, or inputs.
#include <unordered_set>

#include "ops/traits.h"
#include "passes/pass.h"

namespace graphlift::passes {

bool remove_dead_code(ir::Graph* graph) {
  std::unordered_set<const ir::Node*> used;
  auto use = [&](const ir::ValueRef& value) { used.insert(value.node); };
  for (const ir::Arg& arg : graph->outputs()) ir::for_each_value(arg, use);
  bool changed = false;
  auto& nodes = graph->nodes();
  for (auto next = nodes.end(); next != nodes.begin();) {
    ir::Node& node = *std::prev(next);
    bool live =
        node.kind != ir::NodeKind::Call || used.count(&node) || ops::traits(node.op).effect != ops::Effect::None;
    if (live) {
      for (const ir::Arg& arg : node.args) ir::for_each_value(arg, use);
      --next;
    } else {
      graph->erase(&node);
      changed = true;
    }
  }
  return changed;
}

}  // namespace graphlift::passes
