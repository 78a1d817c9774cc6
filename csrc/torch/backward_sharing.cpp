// Owns: see backward_sharing.h.
#include "torch/backward_sharing.h"

#include <algorithm>
#include <unordered_map>

namespace graphlift::torch_layer {
namespace {

using Set = std::vector<bool>;

void add(const Set& from, Set* to) {
  for (size_t i = 0; i < from.size(); ++i)
    if (from[i]) (*to)[i] = true;
}

bool any(const Set& set) { return std::find(set.begin(), set.end(), true) != set.end(); }

// What a call's results were made of.
struct Sources {
  Set tangents;
  Set saved;  // through calls that depend on no tangent
};

}  // namespace

BackwardSharing backward_sharing(const ir::Graph& backward, size_t saved) {
  const auto& inputs = backward.inputs();
  const size_t tangents = inputs.size() - saved;
  BackwardSharing sharing{std::vector(tangents, Set(tangents)), std::vector(tangents, Set(saved))};
  std::unordered_map<const ir::Node*, Sources> by_node;
  for (size_t i = 0; i < inputs.size(); ++i) {
    Sources& of = by_node[inputs[i]] = {Set(tangents), Set(saved)};
    (i < saved ? of.saved[i] : of.tangents[i - saved]) = true;
  }
  for (const ir::Node& node : backward.nodes()) {
    if (node.kind == ir::NodeKind::Input) continue;
    Sources of{Set(tangents), Set(saved)};
    for (const ir::Arg& arg : node.args)
      ir::for_each_value(arg, [&](const ir::ValueRef& value) {
        const Sources& read = by_node.at(value.node);
        add(read.tangents, &of.tangents);
        add(read.saved, &of.saved);
      });
    if (any(of.tangents)) {
      if (any(of.saved))
        for (size_t i = 0; i < tangents; ++i)
          if (of.tangents[i]) {
            add(of.tangents, &sharing.shares[i]);
            add(of.saved, &sharing.reads[i]);
          }
      of.saved.assign(saved, false);
    }
    by_node.emplace(&node, std::move(of));
  }
  return sharing;
}

}  // namespace graphlift::torch_layer
