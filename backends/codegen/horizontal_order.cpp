// Owns: see horizontal_order.h.
#include "backends/codegen/horizontal_order.h"

#include <algorithm>
#include <map>
#include <unordered_map>
#include <unordered_set>

#include "ops/layout.h"
#include "ops/traits.h"

namespace graphlift::codegen {
namespace {

using Calls = std::vector<const ir::Node*>;

int64_t bytes_of(const ir::TensorType& type) {
  return ir::is_constant(type) ? ops::product(type.sizes).constant() * ir::bytes(type.dtype) : INT64_MAX / 4;
}

template <class Visit>
void for_each_argument(const ir::Node& node, Visit visit) {
  for (const ir::Arg& arg : node.args) ir::for_each_value(arg, visit);
}

// What a call that moves to the end reads is kept until then.
constexpr int64_t kMostLateBytes = 4096;

class Order {
 public:
  Order(const FusedGraph& fused, const HorizontalOptions& options) : fused_(fused), options_(options) {
    for (const ir::Node& node : fused_.graph->nodes())
      if (node.kind != ir::NodeKind::Input) calls_.push_back(&node);
  }

  Calls run() {
    if (std::any_of(calls_.begin(), calls_.end(), [](const ir::Node* node) { return acts_on_memory(*node); }))
      return calls_;
    find_uses();
    take(&early_, [this](const ir::Node& node) { return is_early(node); });
    take(&late_, [this](const ir::Node& node) { return is_late(node); });
    return ordered();
  }

 private:
  // In a way that is not in the graph.
  static bool acts_on_memory(const ir::Node& node) {
    const bool own = node.op == kernel_op() || node.op == native_op() || node.op == check_op();
    return !own && ops::traits(node.op).effect == ops::Effect::Write;
  }

  // Calls `visit` with the owner of the memory that a kernel writes its result to, where that exists before.
  template <class Visit>
  void for_each_target(const ir::Node& node, Visit visit) const {
    if (node.op != kernel_op()) return;
    const ir::ArgList& inputs = *node.args[1].list();
    for (const KernelMemory::Result& result : fused_.memory[index_of(node)].results)
      if (result.target >= 0) visit(ops::memory_owner(*inputs[static_cast<size_t>(result.target)].value()));
  }

  void find_uses() {
    for (const ir::Node* node : calls_) {
      for_each_argument(*node, [&](const ir::ValueRef& value) { read_.insert(value.node); });
      for_each_target(*node, [&](const ir::ValueRef& owner) { ++writers_[owner]; });
    }
  }

  // Whether all that the call reads keeps its values, but for what it writes itself.
  bool reads_steady_memory(const ir::Node& node) const {
    std::unordered_map<ir::ValueRef, int, ir::ValueHash> own;
    for_each_target(node, [&](const ir::ValueRef& owner) { ++own[owner]; });
    bool steady = true;
    for_each_argument(node, [&](const ir::ValueRef& value) {
      const auto found = writers_.find(ops::memory_owner(value));
      steady = steady && (found == writers_.end() || found->second == own[found->first]);
    });
    return steady;
  }

  bool is_early(const ir::Node& node) const {
    bool alone = true;
    for_each_target(node, [&](const ir::ValueRef&) { alone = false; });
    for_each_argument(node, [&](const ir::ValueRef& value) {
      alone = alone && ops::memory_owner(value).node->kind == ir::NodeKind::Input;
    });
    return alone && read_.count(&node) > 0 && reads_steady_memory(node);
  }

  bool is_late(const ir::Node& node) const {
    int64_t bytes = 0;
    for_each_argument(node, [&](const ir::ValueRef& value) { bytes += bytes_of(ir::type_of(value)); });
    return bytes <= kMostLateBytes && read_.count(&node) == 0 && reads_steady_memory(node);
  }

  // Calls for which `is_one` holds, of programs that have several.
  template <class IsOne>
  void take(std::unordered_set<const ir::Node*>* to, IsOne is_one) {
    std::map<std::string, Calls> found;
    for (const ir::Node* node : calls_)
      if (node->op == kernel_op() && is_one(*node))
        if (std::string program = part_program(fused_, *node, options_); !program.empty())
          found[std::move(program)].push_back(node);
    for (const auto& [program, calls] : found)
      if (calls.size() > 1) to->insert(calls.begin(), calls.end());
  }

  // With the views that it reads.
  void put(const ir::Node* node, Calls* to) {
    if (node->kind == ir::NodeKind::Input || !put_.insert(node).second) return;
    if (early_.count(node) > 0 || ops::viewed_value(*node))
      for_each_argument(*node, [&](const ir::ValueRef& value) { put(value.node, to); });
    to->push_back(node);
  }

  Calls ordered() {
    Calls made;
    int64_t bytes = 0;
    for (const ir::Node* node : calls_) {
      if (early_.count(node) == 0) continue;
      for (const auto& type : node->outputs) bytes += type ? bytes_of(*type) : 0;
      if (bytes > options_.most_early_bytes) break;
      put(node, &made);
    }
    for (const ir::Node* node : calls_)
      if (late_.count(node) == 0) put(node, &made);
    for (const ir::Node* node : calls_) put(node, &made);
    return made;
  }

  const FusedGraph& fused_;
  const HorizontalOptions& options_;
  Calls calls_;
  std::unordered_set<const ir::Node*> read_, early_, late_, put_;
  std::unordered_map<ir::ValueRef, int, ir::ValueHash> writers_;  // kernels that write to memory, by its owner
};

}  // namespace

std::string part_program(const FusedGraph& fused, const ir::Node& node, const HorizontalOptions& options) {
  if (node.op != kernel_op()) return "";
  const Kernel& kernel = fused.kernels[index_of(node)];
  if (!has_constant_places(kernel)) return "";
  for (const ScalarNode& scalar : kernel.nodes)
    if (scalar.kind == ScalarNode::Kind::Reduce) return "";
  std::string kind;
  if (options.kind && (kind = options.kind(node)).empty()) return "";
  if (kernel.axes.empty()) return kind + "\n" + print(kernel);
  const auto any = of_any_size(kernel);
  return any && kernel.axes[0].extent.constant() <= options.most_elements ? kind + "\n" + print(*any) : "";
}

std::vector<const ir::Node*> gathered(const FusedGraph& fused, const HorizontalOptions& options) {
  return Order(fused, options).run();
}

}  // namespace graphlift::codegen
