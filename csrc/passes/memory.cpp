// Owns: see memory.h.
// Must not: decide what may change.
#include "passes/memory.h"

#include <algorithm>

#include "ops/traits.h"

namespace graphlift::passes {

Memory::Memory(const ir::Graph& graph) {
  for (const ir::Arg& arg : graph.outputs())
    ir::for_each_value(arg, [&](const ir::ValueRef& value) {
      outputs_.insert(value);
      escaping_.insert(ops::memory_owner(value));
    });
  for (const ir::Node& node : graph.nodes()) {
    if (node.kind == ir::NodeKind::Input || ops::traits(node.op).effect != ops::Effect::Write) continue;
    for (const ir::Arg& arg : node.args)
      ir::for_each_value(arg, [&](const ir::ValueRef& value) { written_.insert(ops::memory_owner(value)); });
  }
}

bool Memory::escapes(ir::ValueRef value) const { return escaping_.count(ops::memory_owner(value)) != 0; }

bool Memory::is_written(ir::ValueRef value) const {
  return !written_.empty() && written_.count(ops::memory_owner(value)) != 0;
}

bool replace_in_calls(ir::Graph* graph, const ValueMap& map) {
  bool changed = false;
  for (ir::Node& node : graph->nodes())
    for (ir::Arg& arg : node.args)
      ir::for_each_value(arg, [&](ir::ValueRef& value) {
        auto found = map.find(value);
        if (found == map.end()) return;
        value = found->second;
        changed = true;
      });
  return changed;
}

bool same_type(const ir::TensorType& a, const ir::TensorType& b) {
  auto equal = [](const ir::Dims& x, const ir::Dims& y) {
    return std::equal(x.begin(), x.end(), y.begin(), y.end(),
                      [](const ir::Sym& s, const ir::Sym& t) { return s.same(t); });
  };
  return a.dtype == b.dtype && a.device == b.device && equal(a.sizes, b.sizes) && equal(a.strides, b.strides) &&
         a.offset.same(b.offset);
}

}  // namespace graphlift::passes
