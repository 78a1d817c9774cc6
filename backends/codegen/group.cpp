// Owns: see group.h.
#include "backends/codegen/group.h"

#include <algorithm>

#include "backends/codegen/across.h"
#include "backends/codegen/axis_map.h"
#include "backends/codegen/needs.h"
#include "backends/codegen/stored_layout.h"
#include "backends/codegen/unit_order.h"
#include "base/error.h"
#include "base/log.h"
#include "base/text.h"
#include "ops/layout.h"
#include "ops/traits.h"

namespace graphlift::codegen {

using Kind = TensorNode::Kind;

namespace {

class Grouper {
 public:
  Grouper(const ir::Graph& graph, const Lowered& lowered, const GroupOptions& options)
      : graph_(graph), lowered_(lowered), options_(options), needs_(find_needs(graph, lowered)) {}

  Grouping run() {
    for (const LoweredCall& call : lowered_.calls)
      if (call.external) external_.emplace(call.node, -1);
    for (const TensorNode& node : lowered_.graph.nodes())
      if (node.kind == Kind::Join && needs_.needed.count(&node))
        for (const Value part : node.args) cat_of_.emplace(part, &node);
    if (options_.inline_cheap) result_.inlined = find_inlined(lowered_, needs_);
    place_all();
    find_stored();
    if (options_.fuse) choose_layouts(graph_, lowered_, needs_, &result_);
    order_steps();
    return std::move(result_);
  }

 private:
  // --- groups --------------------------------------------------------------------------------------------------------
  void place_all() {
    size_t call = 0;
    for (const TensorNode& node : lowered_.graph.nodes()) {
      if (node.kind == Kind::Buffer && node.value) {
        const ir::Node* maker = lowered_.maker_of(*node.value->node);
        if (external_.count(maker)) {
          place_effects_before(maker);
          place_external(maker);
        }
      }
      if (!needs_.needed.count(&node) || !node.computed() || result_.inlined.count(&node)) continue;
      place_externals_before(node, &call);
      place(const_cast<Value>(&node));
    }
    for (const LoweredCall& item : lowered_.calls)
      if (item.external) place_external(item.node);
  }

  // Seeding a generator has no result that would bring it here, and comes before the draws behind it.
  void place_effects_before(const ir::Node* node) {
    if (external_.at(node) >= 0 || ops::traits(node->op).effect == ops::Effect::None) return;
    for (const LoweredCall& call : lowered_.calls) {
      if (call.node == node) return;
      if (call.external && ops::traits(call.node->op).effect != ops::Effect::None) place_external(call.node);
    }
  }

  // External calls without results that are read still have their place in program order.
  void place_externals_before(const TensorNode& node, size_t* call) {
    if (!node.value) return;
    for (size_t i = *call; i < lowered_.calls.size(); ++i) {
      if (lowered_.calls[i].node != node.value->node) continue;
      for (; *call < i; ++*call)
        if (lowered_.calls[*call].external) place_external(lowered_.calls[*call].node);
      return;
    }
  }

  void place_external(const ir::Node* node) {
    int& unit = external_.at(node);
    if (unit >= 0) return;
    unit = units_.add();
    for_each_read(lowered_.chain_of(*node), [&](const ir::ValueRef& value) {
      const auto found = lowered_.values.find(value);
      if (found != lowered_.values.end()) depend_on_value(unit, found->second);
    });
    const ops::Effect effect = ops::traits(node->op).effect;
    if (effect != ops::Effect::None) {
      if (last_effect_ >= 0) units_.depend(unit, last_effect_);
      last_effect_ = unit;
    }
    if (effect == ops::Effect::Write) {
      for (int earlier = 0; earlier < unit; ++earlier) units_.depend(unit, earlier);
      for (auto& group : result_.groups) group->closed = true;
      barrier_ = unit;
    } else if (barrier_ >= 0) {
      units_.depend(unit, barrier_);
    }
  }

  // The unit that makes a value exist, through views and inlined primitives.
  void depend_on_value(int unit, const TensorNode* node) {
    for (const int other : units_behind(node))
      if (other != unit) units_.depend(unit, other);
  }

  std::vector<int> units_behind(const TensorNode* node) const {
    std::vector<int> units;
    collect_units(node, &units);
    return units;
  }

  void collect_units(const TensorNode* node, std::vector<int>* units) const {
    node = memory_of(node);
    if (node->kind == Kind::Buffer) {
      const auto found = external_.find(lowered_.maker_of(*node->value->node));
      if (found != external_.end() && found->second >= 0) units->push_back(found->second);
    } else if (const auto found = result_.group_of.find(node); found != result_.group_of.end()) {
      units->push_back(found->second->unit);
    } else if (const auto join = joins_.find(node); join != joins_.end()) {
      units->push_back(join->second);
    } else if (result_.inlined.count(node)) {
      for (const Value arg : node->args) collect_units(arg, units);
    }
  }

  void place(Value node) {
    if (node->kind == Kind::Join) return place_join(node);
    if (options_.fuse) {
      for (const bool producers : {true, false})
        for (Group* group : candidates(node, producers))
          if (join(group, node)) return;
      if (join_beside(node)) return;
    }
    start(node);
  }

  // Beside another part of one cat, of the same sizes, so that one kernel fills both: parts may read different memory.
  bool join_beside(Value node) {
    const auto cat = cat_of_.find(node);
    if (cat == cat_of_.end() || node->kind == Kind::Reduce) return false;
    for (const Value other : cat->second->args) {
      const auto found = result_.group_of.find(other);
      if (found == result_.group_of.end() || !ops::same(other->sizes, node->sizes)) continue;
      Group* group = found->second;
      const bool open = !group->closed && !group->has_reduction() && group->members.size() < options_.most_members;
      const bool apart =
          std::none_of(node->args.begin(), node->args.end(), [&](const Value arg) { return leads_to(*group, arg); });
      if (!open || !apart || !is_acyclic(*group, node)) continue;
      add(group, node, group->maps.at(other));
      return true;
    }
    return false;
  }

  // Groups that make an operand (producers) or read one, latest first.
  std::vector<Group*> candidates(Value node, bool producers) const {
    std::vector<Group*> found;
    std::vector<const TensorNode*> operands;
    for (const Value arg : node->args) collect_operands(arg, &operands);
    for (auto group = result_.groups.rbegin(); group != result_.groups.rend(); ++group) {
      if ((*group)->closed || (*group)->members.size() >= options_.most_members) continue;
      for (const TensorNode* operand : operands) {
        const auto owner = result_.group_of.find(operand);
        const bool made = owner != result_.group_of.end() && owner->second == group->get();
        const bool read = (*group)->maps.count(operand) != 0 && !is_small(operand, node);
        if (producers ? made : (read && !made)) {
          found.push_back(group->get());
          break;
        }
      }
    }
    return found;
  }

  static bool is_small(const TensorNode* operand, Value node) {
    const Value reader = node->kind == Kind::Reduce ? node->args[0] : node;
    return !ops::product(operand->sizes).same(ops::product(reader->sizes));
  }

  void collect_operands(const TensorNode* node, std::vector<const TensorNode*>* operands) const {
    operands->push_back(node);
    if (node->is_view()) return collect_operands(node->args[0], operands);
    if (result_.inlined.count(node))
      for (const Value arg : node->args) collect_operands(arg, operands);
  }

  // Whether the units behind the node's operands can run before the group.
  bool is_acyclic(const Group& group, Value node) const {
    for (const Value arg : node->args)
      for (const int unit : units_behind(arg))
        if (unit != group.unit && units_.reaches(group.unit, unit)) return false;
    return true;
  }

  // Whether everything that the node reads of the group's own members is read at the members' own indices.
  bool reads_members_whole(Group* group, const Value node) {
    const TensorNode* memory = memory_of(node);
    const auto owner = result_.group_of.find(memory);
    if (owner != result_.group_of.end() && owner->second == group) {
      if (memory->kind == Kind::Join || group->across.count(memory)) return false;
      if (!pull(group, node, result_.inlined)) return false;
    }
    if (node->is_view()) {
      if (!leads_to(*group, node->args[0])) return true;
      return pull(group, node, result_.inlined).has_value() && reads_members_whole(group, node->args[0]);
    }
    return !result_.inlined.count(node) || reads_operands_whole(group, node);
  }

  // What is read at places from data, and the places, which are checked first, have to exist before the kernel.
  bool reads_operands_whole(Group* group, const Value node) {
    for (const Value arg : node->args)
      if (node->kind == Kind::Gather ? leads_to(*group, arg) : !reads_members_whole(group, arg)) return false;
    return true;
  }

  // Whether a member is read on the way to a value.
  bool leads_to(const Group& group, const TensorNode* node) const {
    node = memory_of(node);
    const auto owner = result_.group_of.find(node);
    if (owner != result_.group_of.end()) return owner->second == &group;
    if (!result_.inlined.count(node)) return false;
    for (const Value arg : node->args)
      if (leads_to(group, arg)) return true;
    return false;
  }

  bool join(Group* group, Value node) {
    if (!is_acyclic(*group, node)) return false;
    if (!group->across.empty())
      if (const auto map = map_behind_rows(result_.inlined, group, node)) {
        add(group, node, *map);
        group->across.insert(node);
        return true;
      }
    if (!reads_operands_whole(group, node)) return false;
    // Splits refine the group whether the node joins or not; they change nothing of what it computes.
    const auto map = node->kind == Kind::Reduce ? map_reduce(group, node) : map_elements(group, node);
    if (!map) return false;
    add(group, node, *map);
    return true;
  }

  std::optional<AxisMap> map_elements(Group* group, Value node) {
    for (int round = 0; round < 8; ++round) {
      const size_t axes = group->extents.size();
      PartialMap map(node->sizes.size());
      for (size_t i = 0; i < node->sizes.size(); ++i)
        if (node->sizes[i].same(1)) map[i].emplace();
      bool any = false;
      for (const Value arg : node->aligned()) {
        const auto known = pull(group, arg, result_.inlined);
        if (!known) continue;
        any = true;
        if (!unify(&map, broadcast_map(*known, arg->sizes, node->sizes))) return std::nullopt;
      }
      if (group->extents.size() != axes) continue;
      if (!any) return std::nullopt;
      return complete(*group, node, map);
    }
    return std::nullopt;
  }

  // Dims of which nothing is known take axes that the node does not use yet; each axis that is not reduced is used.
  static std::optional<AxisMap> complete(const Group& group, Value node, const PartialMap& known) {
    std::vector<bool> used(group.extents.size(), false);
    for (const auto& dim : known)
      if (dim)
        for (int axis : *dim) {
          if (used[static_cast<size_t>(axis)]) return std::nullopt;
          used[static_cast<size_t>(axis)] = true;
        }
    AxisMap map;
    for (size_t i = 0; i < known.size(); ++i) {
      if (known[i]) {
        map.push_back(*known[i]);
        continue;
      }
      int chosen = -1;
      for (size_t axis = 0; axis < used.size(); ++axis)
        if (!used[axis] && group.extents[axis].same(node->sizes[i]) && (chosen < 0 || group.reduced[axis]))
          chosen = static_cast<int>(axis);
      if (chosen < 0) return std::nullopt;
      used[static_cast<size_t>(chosen)] = true;
      map.push_back({chosen});
    }
    for (size_t axis = 0; axis < used.size(); ++axis)
      if (!used[axis] && !group.reduced[axis]) return std::nullopt;
    // All reduced axes or none.
    size_t inner = 0, inner_used = 0;
    for (size_t axis = 0; axis < used.size(); ++axis)
      if (group.reduced[axis]) ++inner, inner_used += used[axis];
    if (inner_used != 0 && inner_used != inner) return std::nullopt;
    return map;
  }

  std::optional<AxisMap> map_reduce(Group* group, Value node) {
    const Value operand = node->args[0];
    std::optional<AxisMap> whole;
    if (auto found = group->maps.find(operand); found != group->maps.end()) {
      whole = found->second;
    } else {
      const auto known = pull(group, operand, result_.inlined);
      if (!known) return std::nullopt;
      whole = complete(*group, operand, *known);
    }
    if (!whole || !covers(*group, *whole)) return std::nullopt;
    std::vector<bool> reduced(group->extents.size(), false);
    AxisMap map = *whole;
    for (size_t i = 0; i < map.size(); ++i) {
      if (!node->reduced[i]) continue;
      for (int axis : map[i]) reduced[static_cast<size_t>(axis)] = true;
      map[i].clear();
    }
    if (!group->has_reduction()) {
      if (!options_.few_results && !worth_reducing(*group, reduced)) return std::nullopt;
      group->reduced = reduced;
    } else if (group->reduced != reduced) {
      if (!join_across(graph_, result_.inlined, options_.most_across, group, node, *whole)) return std::nullopt;
    }
    group->maps.emplace(operand, *whole);
    return map;
  }

  // Of an operand that is the same along some axis of the group, the result would be made once per step of that axis.
  static bool covers(const Group& group, const AxisMap& map) {
    std::vector<bool> met(group.extents.size(), false);
    for (const auto& axes : map)
      for (const int axis : axes) met[static_cast<size_t>(axis)] = true;
    return std::all_of(met.begin(), met.end(), [](bool one) { return one; });
  }

  // A reduction to few results would leave the element-wise work before it to few threads.
  static bool worth_reducing(const Group& group, const std::vector<bool>& reduced) {
    ir::Sym kept = 1;
    for (size_t axis = 0; axis < reduced.size(); ++axis)
      if (!reduced[axis]) kept = kept * group.extents[axis];
    return !kept.is_constant() || kept.constant() >= 16;
  }

  void start(Value node) {
    auto group = std::make_unique<Group>();
    group->unit = units_.add();
    if (barrier_ >= 0) units_.depend(group->unit, barrier_);
    const Value whole = node->kind == Kind::Reduce ? node->args[0] : node;
    AxisMap map;
    for (size_t i = 0; i < whole->sizes.size(); ++i) {
      map.emplace_back();
      if (whole->sizes[i].same(1)) continue;
      map.back().push_back(static_cast<int>(group->extents.size()));
      group->extents.push_back(whole->sizes[i]);
      group->reduced.push_back(node->kind == Kind::Reduce && node->reduced[i]);
    }
    if (node->kind == Kind::Reduce) {
      group->maps.emplace(whole, map);
      for (size_t i = 0; i < map.size(); ++i)
        if (node->reduced[i]) map[i].clear();
    }
    Group* made = group.get();
    result_.groups.push_back(std::move(group));
    add(made, node, map);
  }

  void add(Group* group, Value node, const AxisMap& map) {
    group->maps[node] = map;
    group->members.push_back(node);
    result_.group_of[node] = group;
    for (const Value arg : node->args) depend_on_value(group->unit, arg);
    if (node->elementwise())
      for (const Value arg : node->aligned()) note_reads(group, arg, node->sizes, map);
    else
      note_operand_reads(group, node->args[0]);
  }

  void note_operand_reads(Group* group, Value operand) {
    const AxisMap map = group->maps.at(operand);
    if (result_.inlined.count(operand))
      for (const Value arg : operand->aligned()) note_reads(group, arg, operand->sizes, map);
    else if (operand->kind == Kind::View)
      note_viewed(group, operand, map);
  }

  // Remembers how an operand that is read whole lies in the group's axes, for others that read it.
  void note_reads(Group* group, Value operand, const ir::Dims& sizes, const AxisMap& map) {
    if (operand->kind == Kind::Number) return;
    AxisMap own;
    const size_t lead = sizes.size() - operand->sizes.size();
    for (size_t i = 0; i < operand->sizes.size(); ++i)
      own.push_back(operand->sizes[i].same(1) ? std::vector<int>() : map[lead + i]);
    if (!group->maps.emplace(operand, own).second) return;
    if (result_.inlined.count(operand)) {
      for (const Value arg : operand->aligned()) note_reads(group, arg, operand->sizes, own);
    } else if (operand->kind == Kind::View) {
      note_viewed(group, operand, own);
    }
  }

  void note_viewed(Group* group, Value view, const AxisMap& map) {
    const Value from = view->args[0];
    AxisMap own;
    for (size_t i = 0; i < view->view.size(); ++i) {
      const ViewDim& dim = view->view[i];
      if (from->sizes[i].same(1)) {
        own.emplace_back();
        continue;
      }
      if (dim.from < 0 || !dim.whole() || !from->sizes[i].same(view->sizes[static_cast<size_t>(dim.from)])) return;
      own.push_back(map[static_cast<size_t>(dim.from)]);
    }
    if (group->maps.emplace(from, own).second && from->kind == Kind::View) note_viewed(group, from, own);
  }

  // One kernel fills all parts, or torch's cat does.
  void place_join(Value node) {
    Group* group = nullptr;
    bool together = options_.fuse;
    for (const Value arg : node->args) {
      const auto found = result_.group_of.find(arg);
      Group* owner = found == result_.group_of.end() ? nullptr : found->second;
      together = together && owner && !owner->closed && (!group || group == owner);
      group = owner;
    }
    if (together) {
      group->members.push_back(node);
      result_.group_of[node] = group;
      return;
    }
    result_.external_joins.insert(node->value->node);
    log(Artifact::PerfHints, [&] {
      return cat(node->value->node->op.str(), " is left to torch: its parts are not all made by one kernel");
    });
    external_.emplace(node->value->node, -1);
    const int unit = external_.at(node->value->node) = units_.add();
    if (barrier_ >= 0) units_.depend(unit, barrier_);
    for (const Value arg : node->args) depend_on_value(unit, arg);
    joins_.emplace(node, unit);
  }

  // --- after the last node -------------------------------------------------------------------------------------------
  void find_stored() {
    for (const auto& group : result_.groups) {
      for (const Value node : group->members) {
        if (needs_.demanded.count(node)) result_.stored.insert(node);
        if (node->kind == Kind::Join) {
          result_.stored.insert(node);
          continue;
        }
        for (const Value arg : node->args) store_if_elsewhere(group.get(), arg);
      }
    }
    for (const auto& [node, unit] : joins_)
      for (const Value arg : node->args) result_.stored.insert(arg);
  }

  void store_if_elsewhere(const Group* reader, const TensorNode* node) {
    const TensorNode* memory = memory_of(node);
    if (result_.inlined.count(memory)) {
      for (const Value arg : memory->args) store_if_elsewhere(reader, arg);
      return;
    }
    if (!memory->computed()) return;
    const auto owner = result_.group_of.find(memory);
    const bool here = owner != result_.group_of.end() && owner->second == reader && reader->maps.count(memory);
    if (!here) result_.stored.insert(memory);
  }

  void order_steps() {
    std::vector<Grouping::Step> by_unit(static_cast<size_t>(units_.size()));
    for (const auto& group : result_.groups) by_unit[static_cast<size_t>(group->unit)].group = group.get();
    for (const auto& [node, unit] : external_)
      if (unit >= 0) by_unit[static_cast<size_t>(unit)].external = node;
    for (const int unit : units_.order()) result_.steps.push_back(by_unit[static_cast<size_t>(unit)]);
  }

  const ir::Graph& graph_;
  const Lowered& lowered_;
  const GroupOptions& options_;
  Grouping result_;
  UnitOrder units_;
  const Needs needs_;
  std::unordered_map<const ir::Node*, int> external_;
  std::unordered_map<const TensorNode*, int> joins_;
  std::unordered_map<const TensorNode*, const TensorNode*> cat_of_;  // by part
  int last_effect_ = -1, barrier_ = -1;
};

}  // namespace

Grouping group(const ir::Graph& graph, const Lowered& lowered, const GroupOptions& options) {
  return Grouper(graph, lowered, options).run();
}

}  // namespace graphlift::codegen
