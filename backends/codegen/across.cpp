// Owns: see across.h.
#include "backends/codegen/across.h"

#include <algorithm>

#include "backends/codegen/axis_map.h"
#include "ops/layout.h"

namespace graphlift::codegen {
namespace {

using Kind = TensorNode::Kind;
using Nodes = std::unordered_set<const TensorNode*>;

// Fewer rows are cut into pieces, or are little work.
constexpr int64_t kLeastRows = 128;

class AcrossJoiner {
 public:
  AcrossJoiner(const ir::Graph& graph, const Nodes& inlined, int64_t most, Group* group)
      : graph_(graph), inlined_(inlined), most_(most), group_(*group) {}

  bool run(Value node, const AxisMap& whole) {
    if (most_ == 0 || !is_complement(*node, whole)) return false;
    std::vector<bool> turned = group_.reduced;
    turned.flip();
    if (fits(group_.reduced) && lies_along_rows(node->args[0], whole, group_.reduced)) {
      group_.across.insert(node);
      return true;
    }
    if (!fits(turned) || !lies_along_rows(node->args[0], whole, turned)) return false;
    auto across = across_of_turned();
    if (!across) return false;
    group_.across = std::move(*across);
    group_.reduced = std::move(turned);
    return true;
  }

 private:
  // Whether the node reduces exactly the axes that the group keeps.
  bool is_complement(const TensorNode& node, const AxisMap& whole) const {
    for (size_t i = 0; i < whole.size(); ++i)
      for (const int axis : whole[i])
        if (node.reduced[i] == group_.reduced[static_cast<size_t>(axis)]) return false;
    return true;
  }

  bool fits(const std::vector<bool>& reduced) const {
    ir::Sym rows = 1, elements = 1;
    for (size_t axis = 0; axis < reduced.size(); ++axis) {
      if (reduced[axis] && !group_.extents[axis].is_constant()) return false;
      (reduced[axis] ? elements : rows) = (reduced[axis] ? elements : rows) * group_.extents[axis];
    }
    if (elements.constant() < 1 || elements.constant() > most_) return false;
    return !rows.is_constant() || rows.constant() >= kLeastRows;
  }

  // Whether what is read lies in memory along reduced axes, as far as it is known.
  bool lies_along_rows(const TensorNode* node, const AxisMap& map, const std::vector<bool>& reduced) {
    if (!seen_.insert(node).second) return true;
    if (node->value && (node->is_view() || node->kind == Kind::Buffer)) {
      const ir::TensorType& type = graph_.type(*node->value);
      return type.rank() != node->rank() || lies_along(type, map, reduced);
    }
    if (!node->elementwise()) return true;
    for (const Value arg : node->aligned()) {
      if (!ops::product(arg->sizes).same(ops::product(node->sizes))) continue;
      const AxisMap own(map.end() - arg->rank(), map.end());
      if (!lies_along_rows(arg, own, reduced)) return false;
    }
    return true;
  }

  static bool lies_along(const ir::TensorType& type, const AxisMap& map, const std::vector<bool>& reduced) {
    bool spread = true;
    for (size_t i = 0; i < map.size(); ++i) {
      if (map[i].empty() || type.strides[i].same(0)) continue;
      spread = false;
      if (type.strides[i].same(1)) return reduced[static_cast<size_t>(map[i].back())];
    }
    return spread;
  }

  // The group's reductions, and what is made of them: that has to be all that reads them. Other members belong to
  // single elements.
  std::optional<Nodes> across_of_turned() const {
    Nodes across;
    for (const Value member : group_.members) {
      auto reads_across = [&](const Value arg) { return leads_to(across, arg); };
      if (member->kind == Kind::Join) {
        if (!std::all_of(member->args.begin(), member->args.end(), reads_across)) return std::nullopt;
        continue;
      }
      const bool reads = std::any_of(member->args.begin(), member->args.end(), reads_across);
      const bool reduces = member->kind == Kind::Reduce, element = covers(group_.maps.at(member));
      if (reads ? reduces || element : !(reduces || element)) return std::nullopt;
      if (reads || reduces) across.insert(member);
    }
    return across;
  }

  bool leads_to(const Nodes& nodes, const TensorNode* node) const {
    node = memory_of(node);
    if (nodes.count(node)) return true;
    return inlined_.count(node) &&
           std::any_of(node->args.begin(), node->args.end(), [&](const Value arg) { return leads_to(nodes, arg); });
  }

  bool covers(const AxisMap& map) const {
    size_t axes = 0;
    for (const auto& dim : map) axes += dim.size();
    return axes == group_.extents.size();
  }

  const ir::Graph& graph_;
  const Nodes& inlined_;
  const int64_t most_;
  Group& group_;
  Nodes seen_;
};

// Whether a value reads members only that are known behind all rows, at their own indices; `any`: it reads some.
bool reads_behind_rows(const Nodes& inlined, Group* group, const Value node, bool* any) {
  const TensorNode* memory = memory_of(node);
  const bool member = group->maps.count(memory) && memory->computed() && !inlined.count(memory);
  if (member && std::find(group->members.begin(), group->members.end(), memory) != group->members.end()) {
    *any = true;
    return group->across.count(memory) && pull(group, node, inlined);
  }
  if (!inlined.count(memory)) return true;
  const bool before = *any;
  for (const Value arg : memory->args)
    if (!reads_behind_rows(inlined, group, arg, any)) return false;
  return node == memory || *any == before;
}

}  // namespace

std::optional<AxisMap> map_behind_rows(const Nodes& inlined, Group* group, Value node) {
  if (node->kind != Kind::Map) return std::nullopt;
  bool any = false;
  for (const Value arg : node->args)
    if (!reads_behind_rows(inlined, group, arg, &any)) return std::nullopt;
  if (!any) return std::nullopt;
  PartialMap map(node->sizes.size());
  for (size_t i = 0; i < node->sizes.size(); ++i)
    if (node->sizes[i].same(1)) map[i].emplace();
  const size_t axes = group->extents.size();
  for (const Value arg : node->args) {
    const auto known = pull(group, arg, inlined);
    if (known && !unify(&map, broadcast_map(*known, arg->sizes, node->sizes))) return std::nullopt;
  }
  std::vector<bool> used(group->extents.size(), false);
  AxisMap whole;
  for (const auto& dim : map) {
    if (!dim || group->extents.size() != axes) return std::nullopt;
    for (const int axis : *dim) used[static_cast<size_t>(axis)] = true;
    whole.push_back(*dim);
  }
  return used == group->reduced ? std::optional(whole) : std::nullopt;
}

bool join_across(const ir::Graph& graph, const Nodes& inlined, int64_t most, Group* group, Value node,
                 const AxisMap& whole) {
  return AcrossJoiner(graph, inlined, most, group).run(node, whole);
}

}  // namespace graphlift::codegen
