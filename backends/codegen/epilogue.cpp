// Owns: see epilogue.h.
#include "backends/codegen/epilogue.h"

#include <algorithm>
#include <unordered_set>

#include "ops/traits.h"

namespace graphlift::codegen {
namespace {

// By value: the calls that read it, once per argument; null for the graph's outputs.
using Readers = std::unordered_map<ir::ValueRef, std::vector<const ir::Node*>, ir::ValueHash>;

Readers find_readers(const ir::Graph& graph) {
  Readers readers;
  for (const ir::Node& node : graph.nodes())
    for (const ir::Arg& arg : node.args)
      ir::for_each_value(arg, [&](const ir::ValueRef& value) { readers[value].push_back(&node); });
  for (const ir::Arg& output : graph.outputs())
    ir::for_each_value(output, [&](const ir::ValueRef& value) { readers[value].push_back(nullptr); });
  return readers;
}

// The chain is computed where its last call is: what its first one reads must be the same there.
bool writes_in_place(const ir::Graph& graph) {
  return std::any_of(graph.nodes().begin(), graph.nodes().end(), [](const ir::Node& node) {
    return node.kind == ir::NodeKind::Call && ops::traits(node.op).effect == ops::Effect::Write;
  });
}

}  // namespace

Epilogues find_epilogues(const ir::Graph& graph, const std::function<bool(const ir::Node&)>& takes,
                         const std::function<Finish(const Chain&)>& finishes) {
  Epilogues found;
  if (!takes || !finishes || writes_in_place(graph)) return found;
  const Readers readers = find_readers(graph);
  std::unordered_set<const ir::Node*> used;
  for (const ir::Node& node : graph.nodes()) {
    if (node.kind != ir::NodeKind::Call || node.outputs.size() != 1 || used.count(&node) || !takes(node)) continue;
    Chain chain = {&node};
    size_t length = 1;
    for (;;) {
      const auto next = readers.find({const_cast<ir::Node*>(chain.back()), 0});
      if (next == readers.end() || next->second.size() != 1 || !next->second[0]) break;
      const ir::Node* reader = next->second[0];
      if (reader->outputs.size() != 1 || !reader->outputs[0] || used.count(reader)) break;
      chain.push_back(reader);
      const Finish finish = finishes(chain);
      if (finish == Finish::No) break;
      if (finish == Finish::Here) length = chain.size();
    }
    if (length == 1) continue;
    chain.resize(length);
    used.insert(chain.begin(), chain.end());
    const ir::Node* last = chain.back();
    chain.pop_back();
    found.emplace(last, std::move(chain));
  }
  return found;
}

}  // namespace graphlift::codegen
