// Owns: see stored_layout.h.
#include "backends/codegen/stored_layout.h"

#include <algorithm>

#include "backends/codegen/kernel_build.h"
#include "ops/layout.h"

namespace graphlift::codegen {
namespace {

using Kind = TensorNode::Kind;

class LayoutChooser {
 public:
  LayoutChooser(const ir::Graph& graph, const Lowered& lowered, const Needs& needs, Grouping* grouping)
      : graph_(graph), needs_(needs), grouping_(*grouping) {
    // Views with types of their own were made of eager's strides.
    for (const TensorNode& node : lowered.graph.nodes()) {
      const bool fixed =
          node.kind == Kind::Reshape || node.kind == Kind::Alias || (node.kind == Kind::View && node.value);
      if (fixed && needs.needed.count(&node)) viewed_.insert(memory_of(&node));
    }
  }

  void run() {
    for (const auto& group : grouping_.groups)
      for (const Value member : group->members)
        if (is_free(member)) choose(*group, member);
  }

 private:
  struct Vote {
    ir::Dims strides;
    int64_t bytes;
  };

  bool is_free(const TensorNode* node) const {
    return node->elementwise() && node->rank() >= 2 && grouping_.stored.count(node) && !needs_.demanded.count(node) &&
           !needs_.plain.count(node) && !viewed_.count(node);
  }

  bool is_in_memory(const TensorNode* node) const {
    return node->kind == Kind::Buffer || (node->computed() && grouping_.stored.count(node));
  }

  void vote(const TensorNode* node, const TensorNode* like) {
    if (!is_in_memory(node) || !ops::same(node->sizes, like->sizes)) return;
    const ir::TensorType type = stored_type(graph_, grouping_, *node, {});
    if (!seen_.insert(node).second || !ir::is_constant(type) || !ops::is_dense(nothing_varies_, type)) return;
    const int64_t bytes = ir::bytes(type.dtype);
    const auto found = std::find_if(votes_.begin(), votes_.end(),
                                    [&](const Vote& vote) { return ops::same(vote.strides, type.strides); });
    if (found == votes_.end())
      votes_.push_back({type.strides, bytes});
    else
      found->bytes += bytes;
  }

  void vote_operands(const TensorNode* node, const TensorNode* like) {
    vote(node, like);
    if (grouping_.inlined.count(node))
      for (const Value arg : node->args) vote_operands(arg, like);
  }

  void choose(const Group& group, const TensorNode* node) {
    votes_.clear();
    seen_.clear();
    seen_.insert(node);
    for (const Value member : group.members) {
      if (!is_free(member) || grouping_.layouts.count(member)) vote(member, node);
      for (const Value arg : member->args) vote_operands(arg, node);
    }
    const ir::Dims usual = stored_type(graph_, grouping_, *node, {}).strides;
    int64_t most = 0;
    for (const Vote& vote : votes_)
      if (ops::same(vote.strides, usual)) most = vote.bytes;
    for (const Vote& vote : votes_)
      if (vote.bytes > most) most = vote.bytes, grouping_.layouts[node] = vote.strides;
  }

  const ir::Graph& graph_;
  const Needs& needs_;
  Grouping& grouping_;
  std::unordered_set<const TensorNode*> viewed_, seen_;
  std::vector<Vote> votes_;
  ir::ShapeEnv nothing_varies_;
};

}  // namespace

void choose_layouts(const ir::Graph& graph, const Lowered& lowered, const Needs& needs, Grouping* grouping) {
  LayoutChooser(graph, lowered, needs, grouping).run();
}

}  // namespace graphlift::codegen
