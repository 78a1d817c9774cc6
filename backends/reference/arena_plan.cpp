// Owns: see arena_plan.h.
#include "backends/reference/arena_plan.h"

#include <algorithm>

#include "ops/layout.h"
#include "ops/traits.h"

namespace graphlift::reference {
namespace {

// From the first to the last element that a tensor reaches.
int64_t bytes_of(const ir::TensorType& type) {
  int64_t last = 0;
  for (size_t i = 0; i < type.sizes.size(); ++i) {
    if (type.sizes[i].same(0)) return 0;
    last += (type.sizes[i].constant() - 1) * type.strides[i].constant();
  }
  return (last + 1) * ir::bytes(type.dtype);
}

bool is_small(const ir::TensorType& type) {
  if (!ir::is_constant(type) || !type.offset.same(0)) return false;
  const int64_t bytes = bytes_of(type);
  return bytes > 0 && bytes < kMostArenaBytes;
}

// Whether torch's operator may answer with an argument, or keep one: composite ones and those that are called unsafe do
// the first without saying so, and what others than torch's do is not known.
bool may_hand_on(const ir::Node& node, const c10::OperatorHandle& op) {
  const std::string_view name = node.op.str();
  if (!name.starts_with("aten::") || ops::traits(node.op).effect == ops::Effect::Write) return true;
  if (name.find("unsafe") != std::string_view::npos) return true;
  if (op.hasKernelForDispatchKey(c10::DispatchKey::CompositeImplicitAutograd)) return true;
  auto aliases = [](const c10::Argument& argument) { return argument.alias_info() != nullptr; };
  const c10::FunctionSchema& schema = op.schema();
  return std::any_of(schema.arguments().begin(), schema.arguments().end(), aliases) ||
         std::any_of(schema.returns().begin(), schema.returns().end(), aliases);
}

class Finder {
 public:
  Finder(const std::vector<Step>& steps, const std::unordered_map<const ir::Node*, int>& step_of,
         std::unordered_set<int>* readers)
      : steps_(steps), step_of_(step_of), readers_(readers) {}

  std::vector<ArenaValue> run(const ir::Graph& graph) {
    for (const ir::Node& node : graph.nodes())
      if (const auto step = step_of_.find(&node); step != step_of_.end()) visit(node, step->second);
    for (const ir::Arg& output : graph.outputs())
      ir::for_each_value(output, [&](const ir::ValueRef& value) { drop(value); });
    keep_one_device();
    for (const ir::Node* node : reading_) note_reads(*node);
    std::erase_if(values_, [](const ArenaValue& value) { return value.span.bytes == 0; });
    return std::move(values_);
  }

 private:
  // Of memory that is another call's: dropped.
  ArenaValue* find(const ir::ValueRef& value) {
    const auto found = places_.find(ops::memory_owner(value));
    return found == places_.end() ? nullptr : &values_[found->second];
  }
  void drop(const ir::ValueRef& value) {
    if (ArenaValue* found = find(value)) found->span.bytes = 0;
  }

  // Numbers of the CPU among values of a GPU have no place.
  void keep_one_device() {
    const auto own = std::find_if(values_.begin(), values_.end(),
                                  [](const ArenaValue& value) { return !value.type.device.is_cpu(); });
    if (own == values_.end()) return;
    const ir::Device device = own->type.device;
    for (ArenaValue& value : values_)
      if (value.type.device != device) value.span.bytes = 0;
  }

  void note_reads(const ir::Node& node) {
    const bool view = ops::viewed_value(node);
    for (const ir::Arg& arg : node.args)
      ir::for_each_value(arg, [&](const ir::ValueRef& value) {
        const ArenaValue* found = find(value);
        if (found && found->span.bytes > 0 && !view) readers_->insert(step_of_.at(&node));
      });
  }

  void visit(const ir::Node& node, int at) {
    const Step& step = steps_[static_cast<size_t>(at)];
    const bool keeps = !step.native && !ops::viewed_value(node) && may_hand_on(node, *step.op);
    for (const ir::Arg& arg : node.args)
      ir::for_each_value(arg, [&](const ir::ValueRef& value) {
        if (ArenaValue* found = find(value)) found->span.last = at;
        if (keeps) drop(value);
      });
    if (!step.native && !keeps) reading_.push_back(&node);
    if (!step.native) return;
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      const auto& type = node.outputs[i];
      if (step.results[i] < 0 || !type || !step.native->fills(i) || !is_small(*type)) continue;
      const ir::ValueRef value{const_cast<ir::Node*>(&node), static_cast<int>(i)};
      places_[value] = values_.size();
      values_.push_back({value, *type, {bytes_of(*type), at, at}});
    }
  }

  const std::vector<Step>& steps_;
  const std::unordered_map<const ir::Node*, int>& step_of_;
  std::unordered_map<ir::ValueRef, size_t, ir::ValueHash> places_;
  std::vector<ArenaValue> values_;
  std::vector<const ir::Node*> reading_;
  std::unordered_set<int>* const readers_;
};

}  // namespace

std::vector<ArenaValue> find_arena_values(const ir::Graph& graph, const std::vector<Step>& steps,
                                          const std::unordered_map<const ir::Node*, int>& step_of,
                                          std::unordered_set<int>* readers) {
  return Finder(steps, step_of, readers).run(graph);
}

}  // namespace graphlift::reference
