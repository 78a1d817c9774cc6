// Owns: making an Executable from a recording: partition, pruning, compilation, and where each value of a call goes.
#include "torch/executable.h"

#include <torch/csrc/autograd/python_variable.h>

#include <algorithm>
#include <set>

#include "autograd/partition.h"
#include "base/error.h"
#include "base/log.h"
#include "ops/traits.h"
#include "passes/pass.h"
#include "torch/call_executable.h"
#include "torch/executable_alias.h"
#include "torch/expectations.h"
#include "torch/generator_states.h"
#include "torch/silent_writes.h"

namespace graphlift::torch_layer {
namespace {

bool has_value(const OutputPlan& plan) { return plan.aliasing != Aliasing::Input; }

std::vector<at::Tensor> unwrap_constants(const std::vector<Ref>& constants) {
  std::vector<at::Tensor> tensors;
  for (const Ref& constant : constants) {
    GL_CHECK(THPVariable_Check(constant.get()), "a constant of a graph is not a tensor");
    tensors.push_back(THPVariable_Unpack(constant.get()));
  }
  return tensors;
}

void check_plans(const Traced& traced) {
  GL_CHECK(traced.joint != nullptr, "a recording without a graph");
  GL_CHECK(traced.refuse.empty(), "a recording that must not be compiled: " + traced.refuse);
  const std::string wrong = ir::verify(*traced.joint);
  GL_CHECK(wrong.empty(), "a malformed joint graph: " + wrong);
  GL_CHECK(traced.joint->inputs().size() == traced.inputs.size() + static_cast<size_t>(traced.tangents),
           "the joint graph's inputs are not primals and tangents");
  for (const InputPlan& plan : traced.inputs)
    GL_CHECK(!plan.mutated_metadata, "an input's sizes, strides or storage were changed");
  for (const OutputPlan& plan : traced.outputs) {
    const bool fresh = plan.aliasing == Aliasing::Fresh;
    GL_CHECK(fresh || plan.tangent < 0, "an output that is an input or a view has a tangent");
    const size_t limit = plan.aliasing == Aliasing::ViewOfOutput ? traced.outputs.size() : traced.inputs.size();
    GL_CHECK(fresh || (plan.of >= 0 && static_cast<size_t>(plan.of) < limit), "an output aliases nothing");
    GL_CHECK(plan.aliasing != Aliasing::ViewOfOutput ||
                 traced.outputs[static_cast<size_t>(plan.of)].aliasing == Aliasing::Fresh,
             "an output is a view of one that is not fresh");
  }
}

// Outputs that require a gradient and pass it to nobody still belong to a node.
std::unique_ptr<ir::Graph> without_gradients(const ir::Graph& joint, size_t primals) {
  auto graph = std::make_unique<ir::Graph>();
  for (size_t i = primals; i < joint.inputs().size(); ++i)
    graph->add_input(joint.inputs()[i]->input_name, joint.type({joint.inputs()[i], 0}));
  return graph;
}

passes::PassOptions passes_of(const backend::Options& options) {
  passes::PassOptions which;
  for (const std::string& name : options.skip)
    if (passes::find_pass(name)) which.skip.push_back(name);
  return which;
}

}  // namespace

RegionExecutable::RegionExecutable(Traced traced, const CompileOptions& options)
    : inputs_(std::move(traced.inputs)), outputs_(std::move(traced.outputs)) {
  int numbers = 0;
  for (const InputPlan& plan : inputs_) number_of_input_.push_back(plan.number ? numbers++ : -1);
  has_numbers_ = numbers > 0;
  index_outputs();
  tangents_.resize(static_cast<size_t>(traced.tangents));
  gradients_.resize(static_cast<size_t>(traced.gradients));
  index_gradients();
  symbol_count_ = ir::symbol_count(*traced.joint);
  for (const OutputPlan& plan : outputs_) symbol_count_ = std::max(symbol_count_, ir::symbol_count(plan.type));

  std::vector<at::Tensor> constants = unwrap_constants(traced.constants);
  const int values = static_cast<int>(slots_);
  const passes::PassOptions which = passes_of(options.how);
  if (options.backend->chooses_layouts()) passes::run_passes(traced.joint.get(), which, passes::Stage::Joint);
  autograd::PartitionOptions partition_options;
  partition_options.recompute = options.recompute;
  auto parts = autograd::partition(*traced.joint, static_cast<int>(inputs_.size()), values, partition_options);
  forward_graph_ = std::move(parts.forward);
  std::vector<std::pair<int, int>> saved;
  std::set<int> needed;
  for (const auto& value : parts.saved) {
    saved.emplace_back(value.primal, value.output);
    needed.insert(value.output);
  }
  // Views are made on the real tensors; their values are of no use unless backward reads them.
  for (size_t i = 0; i < outputs_.size(); ++i) {
    const int slot = slot_of_plan_[i];
    if (slot >= 0 && outputs_[i].aliasing != Aliasing::Fresh && !needed.contains(slot))
      forward_graph_->outputs()[static_cast<size_t>(slot)] = ir::None{};
  }
  passes::run_passes(forward_graph_.get(), which);
  slots_ = forward_graph_->outputs().size();
  for (const ir::Node& node : forward_graph_->nodes()) {
    if (node.kind != ir::NodeKind::Call) continue;
    acts_outside_ |= ops::traits(node.op).effect == ops::Effect::Write && node.op.str() != kExpect;
    draws_ |= ops::traits(node.op).effect == ops::Effect::Random;
  }
  restored_ = devices_to_restore(*forward_graph_);
  find_copies();
  if (options.remember_weights) find_weights();
  if (traced.tangents > 0) {
    plan_saved(saved);
    if (parts.backward) passes::run_passes(parts.backward.get(), which);
    if (!parts.backward) parts.backward = without_gradients(*traced.joint, inputs_.size());
    backend::Options how = options.how;
    how.weights = saved_weights();
    std::vector<bool> shared;
    for (const SavedFrom& from : saved_) shared.push_back(from.kind == SavedFrom::Kind::Primal && !from.copy);
    backward_ = std::make_shared<BackwardProgram>(std::move(parts.backward), std::move(shared), constants,
                                                  options.backend, std::move(how), which);
  }
  backend::Options how = options.how;
  how.weights = weights_;
  how.writes = direct_writes();
  how.saved_from = static_cast<size_t>(values);
  forward_ = options.backend->compile(*forward_graph_, constants, how);
}

// What a backend may write into inputs itself: without history, and while backward reads no input as it was.
std::vector<std::pair<int, int>> RegionExecutable::direct_writes() const {
  std::vector<std::pair<int, int>> writes;
  if (backward_) return writes;
  for (const Mutation& mutation : mutations_) {
    const InputPlan& plan = inputs_[static_cast<size_t>(mutation.input)];
    const bool plain = plan.tangent < 0 && (mutation.no_grad || mutation.unversioned || !plan.type.requires_grad);
    const bool copied = std::find(copies_.begin(), copies_.end(), mutation.slot) != copies_.end();
    if (plain && !copied && !plan.number) writes.emplace_back(mutation.slot, mutation.input);
  }
  return writes;
}

// Those that the region itself does not change.
void RegionExecutable::find_weights() {
  watch_silent_writes();
  for (size_t i = 0; i < inputs_.size(); ++i)
    if (inputs_[i].weight && !inputs_[i].mutated_data) weights_.push_back(static_cast<int>(i));
}

// Of the backward's inputs: the weights themselves, and views of them that share their version.
std::vector<int> RegionExecutable::saved_weights() const {
  std::vector<int> out;
  for (size_t i = 0; i < saved_.size(); ++i) {
    const int primal = saved_[i].kind == SavedFrom::Kind::Primal ? saved_[i].index : saved_[i].version_of;
    if (std::find(weights_.begin(), weights_.end(), primal) != weights_.end()) out.push_back(static_cast<int>(i));
  }
  return out;
}

void RegionExecutable::index_outputs() {
  for (const OutputPlan& plan : outputs_) {
    if (plan.version > 0) versions_.emplace_back(static_cast<int>(slot_of_plan_.size()), plan.version);
    slot_of_plan_.push_back(has_value(plan) ? static_cast<int>(slots_++) : -1);
  }
  for (size_t i = 0; i < inputs_.size(); ++i) {
    if (!inputs_[i].mutated_data) continue;
    const InputPlan& plan = inputs_[i];
    mutations_.push_back(
        {static_cast<int>(i), static_cast<int>(slots_++), plan.mutated_under_no_grad, plan.unversioned, plan.version});
  }
}

void RegionExecutable::index_gradients() {
  auto tangent = [&](int index) -> TangentOf& {
    GL_CHECK(index < static_cast<int>(tangents_.size()), "a tangent beyond the joint graph's inputs");
    TangentOf& of = tangents_[static_cast<size_t>(index)];
    GL_CHECK(of.plan < 0 && of.mutation < 0, "a tangent of two outputs");
    return of;
  };
  for (size_t i = 0; i < outputs_.size(); ++i)
    if (outputs_[i].tangent >= 0) tangent(outputs_[i].tangent).plan = static_cast<int>(i);
  for (size_t i = 0; i < mutations_.size(); ++i)
    if (int index = inputs_[static_cast<size_t>(mutations_[i].input)].tangent; index >= 0)
      tangent(index).mutation = static_cast<int>(i);
  auto gradient = [&](int index) -> GradientOf& {
    GL_CHECK(index < static_cast<int>(gradients_.size()), "a gradient beyond the joint graph's outputs");
    return gradients_[static_cast<size_t>(index)];
  };
  for (size_t i = 0; i < inputs_.size(); ++i)
    if (inputs_[i].gradient >= 0) gradient(inputs_[i].gradient).input = static_cast<int>(i);
  for (size_t i = 0; i < outputs_.size(); ++i) {
    if (outputs_[i].gradient < 0) continue;
    gradient(outputs_[i].gradient).plan = static_cast<int>(i);
    leaf_gradients_.push_back(outputs_[i].gradient);
  }
  for (const GradientOf& of : gradients_)
    GL_CHECK((of.input < 0) != (of.plan < 0), "a gradient of no input and no leaf");
}

// A fresh output, or the new value of an input, that only looks at memory of an input or of a constant, or is another's
// twin.
void RegionExecutable::find_copies() {
  const auto& values = forward_graph_->outputs();
  std::vector<int> own;
  for (size_t i = 0; i < outputs_.size(); ++i)
    if (outputs_[i].aliasing == Aliasing::Fresh) own.push_back(slot_of_plan_[i]);
  for (const Mutation& mutation : mutations_) own.push_back(mutation.slot);
  std::vector<ir::ValueRef> seen;
  for (int slot : own) {
    const ir::ValueRef* value = values.at(static_cast<size_t>(slot)).value();
    GL_CHECK(value != nullptr, "a fresh output without a value");
    const ir::ValueRef owner = memory_owner(*value);
    const bool borrowed = owner.node->kind == ir::NodeKind::Input || owner.node->op == ir::Op("graphlift::constant");
    if (borrowed || std::find(seen.begin(), seen.end(), *value) != seen.end()) copies_.push_back(slot);
    seen.push_back(*value);
  }
}

void RegionExecutable::plan_saved(const std::vector<std::pair<int, int>>& saved) {
  std::vector<int> plan_of_slot(slots_, -1);
  for (size_t i = 0; i < outputs_.size(); ++i)
    if (slot_of_plan_[i] >= 0 && outputs_[i].aliasing == Aliasing::Fresh)
      plan_of_slot[static_cast<size_t>(slot_of_plan_[i])] = static_cast<int>(i);
  int extra = 0;
  for (const OutputPlan& plan : outputs_) extra += has_value(plan);
  extra += static_cast<int>(mutations_.size());

  for (auto [primal, output] : saved) {
    SavedFrom from{SavedFrom::Kind::Extra, 0};
    if (primal >= 0) {
      from = {SavedFrom::Kind::Primal, primal};
      from.copy = inputs_[static_cast<size_t>(primal)].mutated_data;
    } else if (output >= 0 && plan_of_slot[static_cast<size_t>(output)] >= 0) {
      from = {SavedFrom::Kind::Output, plan_of_slot[static_cast<size_t>(output)]};
    } else {
      from.index = output >= 0 ? output : extra++;
      find_version(plan_of_slot, &from);
    }
    saved_.push_back(from);
  }
}

// A saved view has a version counter of its own when it is made below autograd; it must see its base's.
void RegionExecutable::find_version(const std::vector<int>& plan_of_slot, SavedFrom* from) const {
  const auto& values = forward_graph_->outputs();
  const ir::ValueRef owner = memory_owner(*values.at(static_cast<size_t>(from->index)).value());
  const auto& primals = forward_graph_->inputs();
  if (const auto input = std::find(primals.begin(), primals.end(), owner.node); input != primals.end()) {
    const int primal = static_cast<int>(input - primals.begin());
    from->copy = inputs_[static_cast<size_t>(primal)].mutated_data;
    if (!from->copy) from->version_of = primal;
    return;
  }
  for (size_t slot = 0; slot < plan_of_slot.size() && from->version_of_plan < 0; ++slot)
    if (const ir::ValueRef* value = values[slot].value(); value && memory_owner(*value) == owner)
      from->version_of_plan = plan_of_slot[slot];
}

size_t RegionExecutable::forward_calls() const {
  const auto& nodes = forward_graph_->nodes();
  return static_cast<size_t>(
      std::count_if(nodes.begin(), nodes.end(), [](const ir::Node& node) { return node.kind == ir::NodeKind::Call; }));
}

std::unique_ptr<Executable> make_executable(Traced traced, const CompileOptions& options) {
  GL_CHECK(options.backend != nullptr, "a recording is to be compiled by no backend");
  check_plans(traced);
  if (traced.calls) return make_call_executable(std::move(traced), *options.backend);
  if (!traced.calls_refused.empty())
    log(Artifact::PerfHints,
        "a graph goes to its backend as operators of aten, not as the program's own calls: " + traced.calls_refused);
  return std::make_unique<RegionExecutable>(std::move(traced), options);
}

}  // namespace graphlift::torch_layer
