// Owns: see needs.h.
#include "backends/codegen/needs.h"

#include <algorithm>
#include <unordered_map>

#include "backends/codegen/group.h"
#include "ops/layout.h"

namespace graphlift::codegen {
namespace {

using Kind = TensorNode::Kind;

// An inlined value is made of this many primitives at most.
constexpr int kInlinedPrimitives = 8;
// Of one that reads no memory, being made of indices: storing it moves more than it computes.
constexpr int kIndexPrimitives = 32;
// A value per row that its reductions' kernel has better made once, and stored, than each reader per element.
constexpr int kRepeatedPrimitives = 2;

class NeedFinder {
 public:
  NeedFinder(const Lowered& lowered, Needs* needs) : lowered_(lowered), needs_(*needs) {}

  void demand(const ir::ValueRef& value) {
    const auto found = lowered_.values.find(value);
    if (found == lowered_.values.end()) return;
    const TensorNode* memory = memory_of(found->second);
    if (memory->computed()) needs_.demanded.insert(memory);
    need(found->second);
  }

 private:
  void need(const TensorNode* node) {
    if (!needs_.needed.insert(node).second) return;
    if (node->kind == Kind::Alias && memory_of(node)->computed()) needs_.demanded.insert(memory_of(node));
    if (node->kind == Kind::Reshape || node->kind == Kind::Join)
      for (const Value arg : node->args) needs_.plain.insert(memory_of(arg));
    if (node->kind == Kind::Gather) {
      if (memory_of(node->args.back())->computed()) needs_.demanded.insert(memory_of(node->args.back()));
      for (const PlaceCheck& check : node->checks) demand(check.index);
    }
    for (const Value arg : node->args) need(arg);
  }

  const Lowered& lowered_;
  Needs& needs_;
};

class Inliner {
 public:
  Inliner(const Lowered& lowered, const Needs& needs) : lowered_(lowered), needs_(needs) {}

  std::unordered_set<const TensorNode*> run() {
    find_folded();
    for (const TensorNode& node : lowered_.graph.nodes()) {
      if (!node.elementwise() || !needs_.needed.count(&node)) continue;
      if (needs_.demanded.count(&node) || needs_.plain.count(&node)) continue;
      Tree tree;
      grow_map(&node, ops::product(node.sizes), &tree);
      const bool finishes = finishes_reductions(tree);
      if (finishes) finishing_.insert(&node);
      const bool repeated = finishes && tree.primitives > kRepeatedPrimitives && spread_.count(&node);
      const int most = tree.reads ? kInlinedPrimitives : kIndexPrimitives;
      const bool cheap = tree.cheap && tree.large.size() <= 1 && tree.primitives <= most && !repeated;
      if (cheap || folded_.count(&node)) inlined_.insert(&node);
    }
    return std::move(inlined_);
  }

 private:
  struct Tree {
    int primitives = 0;
    std::vector<const TensorNode*> large;  // leaves with as many elements as the root
    bool cheap = true;
    bool reads = false;  // memory; else it is made of indices alone
  };

  void grow(const TensorNode* node, const ir::Sym& elements, Tree* tree) const {
    if (node->is_view()) return grow(node->args[0], elements, tree);
    const bool leaf = node->kind == Kind::Buffer || (node->computed() && !inlined_.count(node));
    if (leaf) {
      tree->reads = true;
      if (!elements.same(1) && ops::product(node->sizes).same(elements)) add_large(node, tree);
      return;
    }
    if (node->elementwise()) grow_map(node, elements, tree);
  }

  bool finishes_reductions(const Tree& tree) const {
    return !tree.large.empty() && std::all_of(tree.large.begin(), tree.large.end(), [&](const TensorNode* leaf) {
      return leaf->kind == Kind::Reduce || finishing_.count(leaf);
    });
  }

  static void add_large(const TensorNode* leaf, Tree* tree) {
    if (std::find(tree->large.begin(), tree->large.end(), leaf) == tree->large.end()) tree->large.push_back(leaf);
  }

  void grow_map(const TensorNode* node, const ir::Sym& elements, Tree* tree) const {
    tree->primitives += row(node->prim).cost != PrimCost::Free;
    tree->cheap = tree->cheap && row(node->prim).cost != PrimCost::Costly;
    for (const Value arg : node->aligned()) grow(arg, elements, tree);
    if (node->kind != Kind::Gather) return;
    tree->reads = true;
    if (ops::product(node->sizes).same(elements)) add_large(node->args.back(), tree);
  }

  // Element-wise work that one reduction reads and nothing else: it belongs into that reduction's loop. And what is
  // read by larger values.
  void find_folded() {
    std::unordered_map<const TensorNode*, int> users;
    std::unordered_set<const TensorNode*> reduced;
    for (const TensorNode& node : lowered_.graph.nodes()) {
      if (!needs_.needed.count(&node)) continue;
      for (const Value arg : node.args) {
        ++users[arg];
        if (node.kind != Kind::Reduce) note_spread(arg, node);
      }
      if (node.kind == Kind::Reduce) reduced.insert(node.args[0]);
    }
    for (const TensorNode* node : reduced)
      if (users[node] == 1) folded_.insert(node);
  }

  void note_spread(const TensorNode* read, const TensorNode& reader) {
    while (read->is_view()) read = read->args[0];
    if (!ops::product(read->sizes).same(ops::product(reader.sizes))) spread_.insert(read);
  }

  const Lowered& lowered_;
  const Needs& needs_;
  std::unordered_set<const TensorNode*> inlined_, folded_, spread_;
  std::unordered_set<const TensorNode*> finishing_;  // made of reductions' results alone, of as many elements
};

}  // namespace

Needs find_needs(const ir::Graph& graph, const Lowered& lowered) {
  Needs needs;
  NeedFinder finder(lowered, &needs);
  for (const LoweredCall& call : lowered.calls) {
    if (!call.external) continue;
    for_each_read(lowered.chain_of(*call.node), [&](const ir::ValueRef& value) { finder.demand(value); });
  }
  for (const ir::Arg& output : graph.outputs())
    ir::for_each_value(output, [&](const ir::ValueRef& value) { finder.demand(value); });
  return needs;
}

std::unordered_set<const TensorNode*> find_inlined(const Lowered& lowered, const Needs& needs) {
  return Inliner(lowered, needs).run();
}

}  // namespace graphlift::codegen
