// Owns: building forward and backward from a joint graph and a choice.
// Must not: choose (choose.cpp) or classify (joint.cpp).
#include "autograd/partition.h"

#include <algorithm>
#include <unordered_map>

#include "autograd/choose.h"
#include "autograd/draws.h"
#include "autograd/joint.h"
#include "base/error.h"

namespace graphlift::autograd {
namespace {

// Copies calls of a joint graph into a new graph.
class Copier {
 public:
  explicit Copier(const Joint& joint) : joint_(joint), values_(joint.definer.size()) {}

  ir::Graph& graph() { return *graph_; }
  bool has(int value) const { return values_[value].node != nullptr; }

  void add_input(int value, std::string name) {
    ir::ValueRef from = joint_.value(value);
    ir::TensorType type = *from.node->outputs[from.index];
    values_[value] = {graph_->add_input(std::move(name), std::move(type)), 0};
  }

  void add_call(size_t c) {
    const Joint::Call& call = joint_.calls[c];
    const ir::Node& node = *call.node;
    ir::ArgList args = node.args;
    size_t read = 0;
    for (ir::Arg& arg : args) ir::for_each_value(arg, [&](ir::ValueRef& value) { value = at(call.reads[read++]); });
    ir::Node* made = graph_->add_call(node.op, std::move(args), node.outputs, node.where);
    made->kind = node.kind;
    made->backward = node.backward;
    made->must_recompute = node.must_recompute;
    made->checkpoint = node.checkpoint;
    for (size_t i = 0; i < node.outputs.size(); ++i)
      if (!has(call.first_value + static_cast<int>(i))) values_[call.first_value + i] = {made, static_cast<int>(i)};
  }

  void add_output(int value) { graph_->outputs().push_back(value < 0 ? ir::Arg(ir::None{}) : ir::Arg(at(value))); }
  std::unique_ptr<ir::Graph> take() { return std::move(graph_); }

 private:
  ir::ValueRef at(int value) const {
    GL_CHECK(has(value), "the partition lost a value");
    return values_[value];
  }

  const Joint& joint_;
  std::vector<ir::ValueRef> values_;  // by value of the joint graph; null: not copied
  std::unique_ptr<ir::Graph> graph_ = std::make_unique<ir::Graph>();
};

// The calls of backward, in order, and the values that it takes from forward.
struct BackwardPlan {
  std::vector<size_t> calls;
  std::vector<int> saved;
};

class BackwardPlanner {
 public:
  BackwardPlanner(const Joint& joint, const Choice& choice)
      : joint_(joint), choice_(choice), planned_(joint.calls.size(), false), taken_(joint.definer.size(), false) {}

  BackwardPlan run() {
    // Calls that run again stand right before their first use, so that their results live shortly.
    for (size_t c = 0; c < joint_.calls.size(); ++c) {
      const Joint::Call& call = joint_.calls[c];
      if (call.late && call.wanted && call.node->kind != ir::NodeKind::Input) require_call(c);
    }
    for (int value : joint_.gradients)
      if (value >= 0) require_value(value);
    for (size_t value = 0; value < taken_.size(); ++value)
      if (taken_[value]) plan_.saved.push_back(static_cast<int>(value));
    return std::move(plan_);
  }

 private:
  void require_value(int value) {
    size_t c = static_cast<size_t>(joint_.definer[value]);
    if (choice_.saved[value]) {
      taken_[value] = true;
    } else if (joint_.calls[c].node->kind != ir::NodeKind::Input) {
      require_call(c);
    }
  }

  // Depth first without recursion: chains are as long as models are deep.
  void require_call(size_t first) {
    std::vector<std::pair<size_t, size_t>> stack;  // call, next read
    auto enter = [&](size_t c) {
      if (planned_[c]) return;
      GL_CHECK(joint_.calls[c].late || choice_.again[c], "backward runs a call that is not its own");
      planned_[c] = true;
      stack.emplace_back(c, 0);
    };
    enter(first);
    while (!stack.empty()) {
      auto& [c, read] = stack.back();
      const Joint::Call& call = joint_.calls[c];
      if (read == call.reads.size()) {
        plan_.calls.push_back(c);
        stack.pop_back();
        continue;
      }
      int value = call.reads[read++];
      size_t definer = static_cast<size_t>(joint_.definer[value]);
      if (choice_.saved[value]) {
        taken_[value] = true;
      } else if (joint_.calls[definer].node->kind != ir::NodeKind::Input) {
        enter(definer);
      }
    }
  }

  const Joint& joint_;
  const Choice& choice_;
  BackwardPlan plan_;
  std::vector<bool> planned_, taken_;
};

std::string input_name(const Joint& joint, int value) {
  ir::ValueRef ref = joint.value(value);
  if (ref.node->kind == ir::NodeKind::Input) return ref.node->input_name;
  std::string name = "saved" + std::to_string(ref.node->id);
  return ref.node->outputs.size() == 1 ? name : name + "_" + std::to_string(ref.index);
}

void build_forward(const Joint& joint, Partition* result, const std::vector<int>& saved) {
  std::vector<bool> runs(joint.calls.size(), false);
  for (size_t c = 0; c < joint.calls.size(); ++c) runs[c] = joint.calls[c].forward;
  for (int value : saved) runs[joint.definer[value]] = true;
  for (size_t c = joint.calls.size(); c-- > 0;)
    if (runs[c])
      for (int value : joint.calls[c].reads) runs[joint.definer[value]] = true;

  Copier copier(joint);
  for (int c = 0; c < joint.primals; ++c) copier.add_input(joint.calls[c].first_value, joint.calls[c].node->input_name);
  for (size_t c = 0; c < joint.calls.size(); ++c)
    if (runs[c] && joint.calls[c].node->kind != ir::NodeKind::Input) copier.add_call(c);
  for (int value : joint.outputs) copier.add_output(value);
  for (int value : saved) {
    Partition::Saved from;
    auto output = std::find(joint.outputs.begin(), joint.outputs.end(), value);
    if (joint.is_primal(value)) {
      from.primal = joint.definer[value];
    } else if (output != joint.outputs.end()) {
      from.output = static_cast<int>(output - joint.outputs.begin());
    } else {
      copier.add_output(value);
    }
    result->saved.push_back(from);
  }
  result->forward = copier.take();
}

void build_backward(const Joint& joint, Partition* result, const BackwardPlan& plan) {
  Copier copier(joint);
  for (int value : plan.saved) copier.add_input(value, input_name(joint, value));
  for (size_t c = static_cast<size_t>(joint.primals); c < joint.calls.size(); ++c) {
    if (joint.calls[c].node->kind != ir::NodeKind::Input) break;
    copier.add_input(joint.calls[c].first_value, joint.calls[c].node->input_name);
  }
  for (size_t c : plan.calls) copier.add_call(c);
  for (int value : joint.gradients) copier.add_output(value);
  result->backward = copier.take();
}

}  // namespace

Partition partition(const ir::Graph& graph, int primals, int forward_outputs, const PartitionOptions& options) {
  std::unique_ptr<ir::Graph> matched = with_first_draws(graph);
  Joint joint = analyze(matched ? *matched : graph, primals, forward_outputs);
  Partition result;
  BackwardPlan plan;
  if (!joint.gradients.empty()) plan = BackwardPlanner(joint, choose(joint, options)).run();
  build_forward(joint, &result, plan.saved);
  if (!joint.gradients.empty()) build_backward(joint, &result, plan);
  return result;
}

}  // namespace graphlift::autograd
