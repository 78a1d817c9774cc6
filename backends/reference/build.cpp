// Owns: turning a graph into a Program: slots for values, constants ahead of time, last uses, the arena.
#include <unordered_map>
#include <unordered_set>

#include "backends/reference/arena_plan.h"
#include "backends/reference/program.h"
#include "base/error.h"
#include "ops/own_sizes.h"
#include "ops/traits.h"
#include "torch/convert.h"

namespace graphlift::reference {
namespace {

using torch_layer::find_operator;
using torch_layer::is_constant;
using torch_layer::to_ivalue;

const ir::Op& constant_op() {
  static const ir::Op op("graphlift::constant");
  return op;
}

}  // namespace

class Builder {
 public:
  Builder(const ir::Graph& graph, const std::vector<at::Tensor>& constants, const NativeFactory& native,
          Program* program)
      : graph_(graph), constants_(constants), native_(native), program_(*program) {}

  void build() {
    find_last_uses();
    find_leaving();
    for (const ir::Node* input : graph_.inputs())
      program_.input_slots_.push_back(define({const_cast<ir::Node*>(input), 0}));
    for (const ir::Node& node : graph_.nodes()) {
      if (node.kind == ir::NodeKind::Input) continue;
      GL_CHECK(node.kind == ir::NodeKind::Call, "the reference backend runs calls only");
      if (node.op == constant_op())
        add_constant(node);
      else
        add_step(node);
    }
    add_outputs();
  }

  void plan_arena() {
    std::vector<ir::TensorType> types;
    std::vector<ArenaSpan> spans;
    std::unordered_set<int> readers;
    for (const ArenaValue& value : find_arena_values(graph_, program_.steps_, step_of_, &readers)) {
      Step& step = program_.steps_[static_cast<size_t>(value.span.first)];
      step.in_arena.resize(step.results.size(), -1);
      step.in_arena[static_cast<size_t>(value.value.index)] = static_cast<int32_t>(types.size());
      types.push_back(value.type);
      spans.push_back(value.span);
    }
    for (const int reader : readers) program_.steps_[static_cast<size_t>(reader)].reads_arena = true;
    backend::counters().in_arenas += types.size();
    program_.arenas_.plan(std::move(types), spans);
  }

 private:
  // The node after which a value is dead; null for values that outputs hold.
  void find_last_uses() {
    for (const ir::Node& node : graph_.nodes())
      for (const ir::Arg& arg : node.args)
        ir::for_each_value(arg, [&](const ir::ValueRef& value) { last_[value] = &node; });
    for (const ir::Arg& output : graph_.outputs())
      ir::for_each_value(output, [&](const ir::ValueRef& value) { last_[value] = nullptr; });
  }

  // The calls whose memory visible outputs lie in.
  void find_leaving() {
    for (size_t i = 0; i < std::min(program_.visible_, graph_.outputs().size()); ++i)
      ir::for_each_value(graph_.outputs()[i],
                         [&](const ir::ValueRef& value) { leaving_.insert(ops::memory_owner(value).node); });
  }

  int32_t define(ir::ValueRef value) {
    if (!last_.contains(value)) return -1;
    int32_t slot;
    if (free_.empty()) {
      slot = static_cast<int32_t>(program_.slot_count_++);
    } else {
      slot = free_.back();
      free_.pop_back();
    }
    slots_[value] = slot;
    return slot;
  }

  int32_t slot(const ir::ValueRef& value) const {
    auto found = slots_.find(value);
    GL_CHECK(found != slots_.end(), "a value is used before it is defined");
    return found->second;
  }

  // Constants stay in slots of their own, which are never reused.
  void add_constant(const ir::Node& node) {
    const ir::Sym* index = node.args.empty() ? nullptr : node.args[0].sym();
    GL_CHECK(index && index->is_constant() && static_cast<size_t>(index->constant()) < constants_.size(),
             "a graphlift::constant node without its tensor");
    const ir::ValueRef value{const_cast<ir::Node*>(&node), 0};
    if (!last_.contains(value)) return;
    const auto fresh = static_cast<int32_t>(program_.slot_count_++);
    slots_[value] = fresh;
    program_.constant_slots_.emplace_back(fresh, constants_[static_cast<size_t>(index->constant())]);
    last_[value] = nullptr;
  }

  Operand operand(const ir::Node& node, const ir::Arg& arg, const c10::TypePtr& type, Step* step) {
    if (is_constant(arg)) {
      program_.constants_.push_back(to_ivalue(arg, type, no_values, {}));
      return {Operand::Kind::Constant, static_cast<int32_t>(program_.constants_.size() - 1)};
    }
    if (const ir::ValueRef* value = arg.value()) return {Operand::Kind::Slot, slot(*value)};
    ComputedArg computed{arg, type};
    ir::for_each_value(computed.arg, [&](ir::ValueRef& value) { value = {nullptr, slot(value)}; });
    program_.computed_.push_back(std::move(computed));
    return {Operand::Kind::Computed, static_cast<int32_t>(program_.computed_.size() - 1)};
  }

  // Slots whose last use is this node: moved from when they are a plain argument, once; otherwise released afterwards.
  void release(const ir::Node& node, Step* step) {
    std::vector<int32_t> dead;
    for (const ir::Arg& arg : node.args) {
      ir::for_each_value(arg, [&](const ir::ValueRef& value) {
        if (last_.at(value) != &node) return;
        const int32_t index = slot(value);
        if (std::find(dead.begin(), dead.end(), index) == dead.end()) dead.push_back(index);
      });
    }
    for (int32_t index : dead) {
      Operand* only = nullptr;
      int uses = 0;
      for (Operand& operand : step->operands)
        if (operand.kind == Operand::Kind::Slot && operand.index == index) only = &operand, ++uses;
      for (const Operand& operand : step->operands)
        if (operand.kind == Operand::Kind::Computed)
          uses += uses_in(program_.computed_[static_cast<size_t>(operand.index)].arg, index);
      if (uses == 1 && only)
        only->kind = Operand::Kind::LastSlot;
      else
        step->releases.push_back(index);
      free_.push_back(index);
    }
  }

  static int uses_in(const ir::Arg& arg, int32_t index) {
    int uses = 0;
    ir::for_each_value(arg, [&](const ir::ValueRef& value) { uses += value.index == index; });
    return uses;
  }

  bool add_native(const ir::Node& node) {
    auto call = native_ ? native_(node) : nullptr;
    if (!call) return false;
    Step step;
    step.native = std::move(call);
    step.leaves = leaving_.contains(&node);
    for (const ir::Arg& arg : node.args)
      ir::for_each_value(arg, [&](const ir::ValueRef& value) { step.reads.push_back(slot(value)); });
    release(node, &step);
    add_results(node, &step);
    step_of_[&node] = static_cast<int>(program_.steps_.size());
    if (step.native->writes_inputs()) program_.writes_from_ = std::min(program_.writes_from_, program_.steps_.size());
    program_.steps_.push_back(std::move(step));
    return true;
  }

  void add_results(const ir::Node& node, Step* step) {
    for (size_t i = 0; i < node.outputs.size(); ++i)
      step->results.push_back(define({const_cast<ir::Node*>(&node), static_cast<int>(i)}));
  }

  void expect_results(const ir::Node& node, Step* step) {
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      const auto& type = node.outputs[i];
      step->expected.emplace_back();
      if (!type || ops::has_own_size(node.op, static_cast<int>(i))) continue;
      step->expected.back() = {torch_layer::to_torch(type->dtype), type->sizes, type->strides};
    }
  }

  void add_step(const ir::Node& node) {
    if (add_native(node)) return;
    ++backend::counters().externals;
    Step step;
    step.op = find_operator(node.op);
    step.leaves = leaving_.contains(&node);
    const auto& parameters = step.op->schema().arguments();
    GL_CHECK(parameters.size() == node.args.size(), "wrong number of arguments for " + std::string(node.op.str()));
    for (size_t i = 0; i < parameters.size(); ++i)
      step.operands.push_back(operand(node, node.args[i], parameters[i].type(), &step));
    release(node, &step);
    add_results(node, &step);
    for (size_t i = 0; i < step.results.size(); ++i)
      step.grad_mode |= step.results[i] >= 0 && ops::is_made_for_gradients(node.op, static_cast<int>(i));
    if (native_ && !ops::viewed_value(node)) expect_results(node, &step);
    step_of_[&node] = static_cast<int>(program_.steps_.size());
    program_.stack_size_ = std::max({program_.stack_size_, parameters.size(), step.op->schema().returns().size()});
    program_.steps_.push_back(std::move(step));
  }

  void add_outputs() {
    std::unordered_map<int32_t, int> uses;
    auto& outputs = program_.outputs_;
    for (const ir::Arg& output : graph_.outputs()) {
      GL_CHECK(output.is_none() || output.value(), "a graph output is neither a value nor None");
      outputs.push_back({output.is_none() ? -1 : slot(*output.value()), false});
    }
    for (const auto& [index, tensor] : program_.constant_slots_) uses[index] = 1;
    for (auto output = outputs.rbegin(); output != outputs.rend(); ++output) output->last = uses[output->slot]++ == 0;
  }

  static constexpr auto no_values = [](const ir::ValueRef&) -> c10::IValue {
    throw InternalError("a constant argument holds a value");
  };

  const ir::Graph& graph_;
  const std::vector<at::Tensor>& constants_;
  const NativeFactory native_;
  Program& program_;
  std::unordered_set<const ir::Node*> leaving_;
  std::unordered_map<ir::ValueRef, const ir::Node*, ir::ValueHash> last_;
  std::unordered_map<ir::ValueRef, int32_t, ir::ValueHash> slots_;
  std::vector<int32_t> free_;
  std::unordered_map<const ir::Node*, int> step_of_;
};

Program::Program(const ir::Graph& graph, const std::vector<at::Tensor>& constants)
    : Program(graph, constants, {}, graph) {}

Program::Program(const ir::Graph& graph, const std::vector<at::Tensor>& constants, const NativeFactory& native,
                 const ir::Graph& original, size_t visible, bool arena)
    : symbol_count_(ir::symbol_count(original)), visible_(visible) {
  Builder builder(graph, constants, native, this);
  builder.build();
  if (arena) builder.plan_arena();
}

}  // namespace graphlift::reference
