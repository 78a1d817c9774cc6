// Owns: see epilogue.h.
#include "backends/codegen/epilogue.h"

#include <algorithm>
#include <unordered_set>

#include "ops/traits.h"

namespace graphlift::codegen {
namespace {

// By value: the calls that read it in program order, once per argument; null for the graph's outputs, which come last.
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

class Finder {
 public:
  Finder(const ir::Graph& graph, const Finishes& finishes) : readers_(find_readers(graph)), finishes_(finishes) {
    int place = 0;
    for (const ir::Node& node : graph.nodes()) places_[&node] = place++;
  }

  // Takes the longest chain that begins with a call, if there is one.
  void follow(const ir::Node& first) {
    if (used_.count(&first)) return;
    Chain chain = {&first};
    int kept = -1;
    Epilogue best;
    const ir::Node* last = nullptr;
    while (const ir::Node* reader = next(chain, &kept)) {
      if (reader->outputs.size() != 1 || !reader->outputs[0] || used_.count(reader)) break;
      chain.push_back(reader);
      if (kept >= 0 && !reads_before_others(chain, kept)) break;
      const Finish finish = finishes_(chain, kept);
      if (finish == Finish::No) break;
      if (finish == Finish::Through) continue;
      last = reader;
      best = {Chain(chain.begin(), chain.end() - 1), kept};
    }
    if (!last) return;
    used_.insert(best.before.begin(), best.before.end());
    used_.insert(last);
    found_.emplace(last, std::move(best));
  }

  Epilogues take() { return std::move(found_); }

 private:
  const std::vector<const ir::Node*>& readers_of(const ir::Node* node) const {
    static const std::vector<const ir::Node*> none;
    const auto found = readers_.find({const_cast<ir::Node*>(node), 0});
    return found == readers_.end() ? none : found->second;
  }

  // The first call that reads the chain's result; null: the chain ends here.
  const ir::Node* next(const Chain& chain, int* kept) const {
    const auto& readers = readers_of(chain.back());
    if (readers.empty()) return nullptr;
    if (readers.size() > 1) {
      if (*kept >= 0 || std::count(readers.begin(), readers.end(), readers[0]) > 1) return nullptr;
      *kept = static_cast<int>(chain.size()) - 1;
    }
    return readers[0];
  }

  // The others find the result where the chain's last call stands.
  bool reads_before_others(const Chain& chain, int kept) const {
    const auto& readers = readers_of(chain[static_cast<size_t>(kept)]);
    return std::none_of(readers.begin() + 1, readers.end(), [&](const ir::Node* reader) {
      return reader && places_.at(reader) <= places_.at(chain.back());
    });
  }

  const Readers readers_;
  const Finishes& finishes_;
  std::unordered_map<const ir::Node*, int> places_;
  std::unordered_set<const ir::Node*> used_;
  Epilogues found_;
};

}  // namespace

Epilogues find_epilogues(const ir::Graph& graph, const std::function<bool(const ir::Node&)>& takes,
                         const Finishes& finishes) {
  if (!takes || !finishes || writes_in_place(graph)) return {};
  Finder finder(graph, finishes);
  for (const ir::Node& node : graph.nodes())
    if (node.kind == ir::NodeKind::Call && node.outputs.size() == 1 && takes(node)) finder.follow(node);
  return finder.take();
}

}  // namespace graphlift::codegen
