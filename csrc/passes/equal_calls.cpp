// Owns: computing equal calls once.
// Must not: merge draws, effects, calls whose memory is written in place, a checkpoint's second run with its first, or
// two results that both leave the graph.
#include <functional>

#include "ops/traits.h"
#include "passes/memory.h"
#include "passes/pass.h"

namespace graphlift::passes {
namespace {

size_t mix(size_t a, size_t b) { return a ^ (b + 0x9e3779b97f4a7c15u + (a << 6) + (a >> 2)); }

struct HashArg {
  template <class T>
  size_t operator()(const T& value) const {
    if constexpr (std::is_same_v<T, ir::ValueRef>)
      return ir::ValueHash()(value);
    else if constexpr (std::is_same_v<T, ir::Sym>)
      return value.is_constant() ? std::hash<int64_t>()(value.constant()) : std::hash<std::string>()(value.str());
    else if constexpr (std::is_same_v<T, double>)
      return value == value ? std::hash<double>()(value) : 7;  // NaN equals NaN here
    else if constexpr (std::is_same_v<T, std::string>)
      return std::hash<std::string>()(value);
    else if constexpr (std::is_same_v<T, ir::DType>)
      return static_cast<size_t>(value);
    else if constexpr (std::is_same_v<T, bool>)
      return value;
    else if constexpr (std::is_same_v<T, ir::ArgList>) {
      size_t hash = value.size();
      for (const ir::Arg& item : value) hash = mix(hash, std::visit(HashArg(), item));
      return hash;
    } else {
      return 3;  // rare ones are told apart by ir::same()
    }
  }
};

struct CallHash {
  size_t operator()(const ir::Node* node) const {
    size_t hash = std::hash<const void*>()(node->op.key());
    for (const ir::Arg& arg : node->args) hash = mix(hash, mix(arg.index(), std::visit(HashArg(), arg)));
    return hash;
  }
};

struct SameCall {
  bool operator()(const ir::Node* a, const ir::Node* b) const {
    if (!(a->op == b->op) || a->must_recompute != b->must_recompute || a->args.size() != b->args.size()) return false;
    for (size_t i = 0; i < a->args.size(); ++i)
      if (!ir::same(a->args[i], b->args[i])) return false;
    return true;
  }
};

class Merger {
 public:
  explicit Merger(ir::Graph* graph) : graph_(*graph), memory_(*graph) {}

  bool run() {
    // Arguments are replaced as calls are met, so that users of merged calls become equal in the same sweep.
    auto visit = [&](ir::ValueRef& value) {
      if (auto found = map_.find(value); found != map_.end()) value = found->second;
    };
    for (ir::Node& node : graph_.nodes()) {
      for (ir::Arg& arg : node.args) ir::for_each_value(arg, visit);
      if (!may_merge(node)) continue;
      auto [first, added] = calls_.insert(&node);
      if (!added && compatible(**first, node))
        for (int i = 0; i < static_cast<int>(node.outputs.size()); ++i) map_[{&node, i}] = {*first, i};
    }
    if (map_.empty()) return false;
    for (ir::Arg& arg : graph_.outputs()) ir::for_each_value(arg, visit);
    for (const auto& [value, first] : map_) dead_.insert(value.node);
    for (ir::Node* node : dead_) graph_.erase(node);
    return true;
  }

 private:
  bool may_merge(const ir::Node& node) const {
    if (node.kind != ir::NodeKind::Call || node.outputs.empty()) return false;
    if (ops::traits(node.op).effect != ops::Effect::None) return false;
    bool written = false;
    for (const ir::Arg& arg : node.args)
      ir::for_each_value(arg, [&](const ir::ValueRef& value) { written |= memory_.is_written(value); });
    for (int i = 0; i < static_cast<int>(node.outputs.size()); ++i)
      written |= memory_.is_written({const_cast<ir::Node*>(&node), i});
    return !written;
  }

  bool compatible(ir::Node& first, ir::Node& second) {
    if (first.outputs.size() != second.outputs.size()) return false;
    bool first_leaves = false, second_leaves = false;
    for (int i = 0; i < static_cast<int>(first.outputs.size()); ++i) {
      if (first.outputs[i].has_value() != second.outputs[i].has_value()) return false;
      if (first.outputs[i] && !same_type(*first.outputs[i], *second.outputs[i])) return false;
      first_leaves |= leaves({&first, i});
      second_leaves |= leaves({&second, i});
    }
    if (first_leaves && second_leaves) return false;
    // From now on the first one leaves where the second one did.
    if (second_leaves) leaving_.insert(&first);
    return true;
  }

  // A view of memory that leaves anyway may be merged unless it is an output itself.
  bool leaves(ir::ValueRef value) const {
    if (leaving_.count(value.node) || memory_.is_output(value)) return true;
    return !ops::viewed_value(*value.node) && memory_.escapes(value);
  }

  ir::Graph& graph_;
  Memory memory_;
  std::unordered_set<ir::Node*, CallHash, SameCall> calls_;
  ValueMap map_;
  std::unordered_set<ir::Node*> leaving_, dead_;
};

}  // namespace

bool merge_common_subexpressions(ir::Graph* graph) { return Merger(graph).run(); }

}  // namespace graphlift::passes
