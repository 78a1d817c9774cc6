// Owns: one call of a region: unwrap, compute, attach the node, save, write back, wrap. The order is part of the
// semantics.
#include <ATen/ATen.h>
#include <c10/util/flat_hash_map.h>
#include <torch/csrc/Exceptions.h>
#include <torch/csrc/autograd/functions/utils.h>
#include <torch/csrc/autograd/python_variable.h>

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "base/gil.h"
#include "torch/executable.h"
#include "torch/expectations.h"
#include "torch/generator_states.h"

namespace graphlift::torch_layer {
namespace {

void share_version(const at::Tensor& view, const at::Tensor& base) {
  if (view.is_inference() || base.is_inference()) return;
  torch::autograd::impl::set_version_counter(view, torch::autograd::impl::version_counter(base));
}

}  // namespace

struct RegionExecutable::Call {
  PyObject* const* inputs;
  std::span<const int64_t> symbols;
  const std::vector<int>& number_of_input;  // index among `numbers`; -1: a tensor
  c10::SmallVector<at::Tensor, 8> values;   // the forward graph's outputs
  c10::SmallVector<at::Tensor, 8> results;  // per plan
  decltype(make_node<RegionNode>(std::shared_ptr<const BackwardProgram>(), torch::autograd::edge_list(),
                                 Symbols())) node;

  c10::SmallVector<at::Tensor, 2> numbers;

  const at::Tensor& input(int primal) const {
    const int number = number_of_input[static_cast<size_t>(primal)];
    return number < 0 ? THPVariable_Unpack(inputs[primal]) : numbers[static_cast<size_t>(number)];
  }
  void read_numbers() {
    for (size_t i = 0; i < number_of_input.size(); ++i)
      if (number_of_input[i] >= 0) numbers.push_back(at::scalar_tensor(PyFloat_AsDouble(inputs[i]), c10::kDouble));
  }
};

Ran RegionExecutable::run(PyObject* const* inputs, const int64_t* symbols, PyObject** outputs) const {
  std::fill_n(outputs, outputs_.size(), nullptr);
  bool late = acts_outside_;
  std::optional<GeneratorStates> generators;
  if (!restored_.empty()) generators.emplace(restored_);
  try {
    torch::PyWarningHandler warnings;
    try {
      Call call{inputs, {symbols, symbol_count_}, number_of_input_};
      if (has_numbers_) call.read_numbers();
      compute(call);
      late = true;
      if (backward_) attach_node(call);
      write_back(call);
      deliver(call, outputs);
      return Ran::Done;
    } catch (...) {
      warnings.set_in_exception();
      throw;
    }
  } catch (const InternalError& error) {
    for (size_t i = 0; i < outputs_.size(); ++i) Py_CLEAR(outputs[i]);
    if (late) throw LateInternalError(error.what());
    throw;
  } catch (python_error& error) {  // of a backend in Python, or of an operator's kernel in it: told as it is
    for (size_t i = 0; i < outputs_.size(); ++i) Py_CLEAR(outputs[i]);
    error.restore();
    return Ran::Failed;
  } catch (const Unexpected& error) {
    if (generators) generators->restore();
    PyErr_SetString(PyExc_RuntimeError, error.what());
    return Ran::Untouched;
  } catch (const std::exception& error) {
    late = late || dynamic_cast<const backend::AfterWriting*>(&error) != nullptr;
    for (size_t i = 0; i < outputs_.size(); ++i) Py_CLEAR(outputs[i]);
    torch::translate_exception_to_python(std::current_exception());
    return late || draws_ ? Ran::Failed : Ran::Untouched;
  }
}

void RegionExecutable::compute(Call& call) const {
  c10::SmallVector<at::Tensor, 8> inputs;
  for (size_t i = 0; i < inputs_.size(); ++i) inputs.push_back(call.input(static_cast<int>(i)));
  call.values.resize(slots_);
  {
    WithoutGil release;
    BelowAutograd below;
    forward_->run(inputs.data(), call.symbols.data(), call.values.data());
    for (int slot : copies_) call.values[static_cast<size_t>(slot)] = call.values[static_cast<size_t>(slot)].clone();
  }
  call.results.resize(outputs_.size());
  for (size_t i = 0; i < outputs_.size(); ++i) {
    const OutputPlan& plan = outputs_[i];
    if (plan.aliasing != Aliasing::Fresh) continue;
    at::Tensor& result = call.results[i];
    result = std::move(call.values[static_cast<size_t>(slot_of_plan_[i])]);
    if (result.is_inference() != plan.inference) result = as_inference(result, plan.inference);
    if (!plan.dead_history.empty())
      torch::autograd::set_history(result, NodePtr(make_node<DeadNode>(plan.dead_history)));
    else if (plan.requires_grad && plan.tangent < 0)
      result.set_requires_grad(true);  // a leaf that the region made
  }
  // Before anything is saved with the version that it has.
  for (const auto& [plan, version] : versions_)
    call.results[static_cast<size_t>(plan)].unsafeGetTensorImpl()->set_version_counter(c10::VariableVersion(version));
}

// Inputs are saved as they were before the region wrote to them, outputs once they have their place in the graph.
void RegionExecutable::attach_node(Call& call) const {
  torch::autograd::edge_list edges;
  edges.reserve(gradients_.size());
  for (const GradientOf& of : gradients_)  // a leaf's own edge can follow only when the leaf is there
    edges.push_back(of.input >= 0 ? torch::autograd::impl::gradient_edge(call.input(of.input))
                                  : torch::autograd::Edge());
  call.node = make_node<RegionNode>(backward_, std::move(edges), Symbols(call.symbols.begin(), call.symbols.end()));
  save_before_outputs(call);
  for (const TangentOf& of : tangents_) {
    if (of.plan >= 0)
      torch::autograd::set_history(call.results[static_cast<size_t>(of.plan)], NodePtr(call.node));
    else if (of.mutation >= 0)
      torch::autograd::set_history(call.values[static_cast<size_t>(mutations_[static_cast<size_t>(of.mutation)].slot)],
                                   NodePtr(call.node));
    else
      call.node->add_input_metadata(torch::autograd::Node::undefined_input());
  }
  for (size_t i = 0; i < saved_.size(); ++i)
    if (saved_[i].kind == SavedFrom::Kind::Output)
      call.node->save(i, call.results[static_cast<size_t>(saved_[i].index)], /*is_output=*/true);
}

void RegionExecutable::save_before_outputs(Call& call) const {
  for (size_t i = 0; i < saved_.size(); ++i) {
    const SavedFrom& from = saved_[i];
    if (from.kind == SavedFrom::Kind::Output) continue;
    const at::Tensor& value =
        from.kind == SavedFrom::Kind::Primal ? call.input(from.index) : call.values[static_cast<size_t>(from.index)];
    if (from.copy) {
      call.node->save(i, value.detach().clone(), false);
      continue;
    }
    if (from.version_of >= 0) share_version(value, call.input(from.version_of));
    if (from.version_of_plan >= 0) share_version(value, call.results[static_cast<size_t>(from.version_of_plan)]);
    call.node->save(i, value, false);
  }
}

namespace {

// A copy through the dispatcher costs more than moving this much.
constexpr size_t kDirectBytes = 16 << 10;

// Copies between small tensors of the CPU that lie alike, as copy_() does without gradients; false: they don't.
bool copy_directly(const at::Tensor& to, const at::Tensor& from, bool versioned) {
  const bool plain = to.device().is_cpu() && from.device().is_cpu() && to.layout() == c10::kStrided &&
                     from.layout() == c10::kStrided && to.scalar_type() == from.scalar_type() &&
                     !to.key_set().has_any(c10::python_ks) && !to.is_inference() && !to.is_conj() && !from.is_conj() &&
                     !to.is_neg() && !from.is_neg();
  if (!plain || to.nbytes() > kDirectBytes || to.sizes() != from.sizes() || to.strides() != from.strides() ||
      !to.is_non_overlapping_and_dense())
    return false;
  if (to.numel() > 0) std::memmove(to.mutable_data_ptr(), from.const_data_ptr(), to.nbytes());
  if (versioned) to.unsafeGetTensorImpl()->bump_version();
  return true;
}

bool is_ordinary(const at::Tensor& tensor) {
  return tensor.layout() == c10::kStrided && !tensor.key_set().has_any(c10::python_ks) && !tensor.is_conj() &&
         !tensor.is_neg();
}

// Copies that nobody differentiates, many of them at once: a GPU takes one launch for those of a dtype. They happen in
// any order, so none of them writes to memory of another one.
class PlainCopies {
 public:
  // Not versioned: autograd is not to see that `to` changed.
  void add(const at::Tensor& to, const at::Tensor& from, bool versioned) {
    if (is_among(written_, to) || is_among(read_, to) || is_among(written_, from)) finish();
    if (copy_directly(to, from, versioned)) return;
    if (!is_ordinary(to) || !is_ordinary(from) || memory(to) == memory(from)) {
      run({{to}, {from}, versioned});
      return;
    }
    Group& group = group_of(to, versioned);
    group.to.push_back(to);
    group.from.push_back(from);
    written_.insert(memory(to));
    read_.insert(memory(from));
  }

  void finish() {
    for (const Group& group : groups_) run(group);
    groups_.clear();
    written_.clear();
    read_.clear();
  }

 private:
  struct Group {
    std::vector<at::Tensor> to, from;
    bool versioned;
  };

  static void run(const Group& group) {
    at::NoGradGuard plain;
    std::optional<BelowAutograd> below;
    if (!group.versioned) below.emplace();
    if (group.to.size() == 1)
      group.to[0].copy_(group.from[0]);
    else
      at::_foreach_copy_(group.to, group.from);
  }

  static const void* memory(const at::Tensor& tensor) { return tensor.storage().unsafeGetStorageImpl(); }
  using Memory = ska::flat_hash_set<const void*>;
  static bool is_among(const Memory& found, const at::Tensor& tensor) {
    return !found.empty() && tensor.has_storage() && found.count(memory(tensor)) > 0;
  }
  Group& group_of(const at::Tensor& to, bool versioned) {
    for (Group& group : groups_)
      if (group.versioned == versioned && group.to[0].scalar_type() == to.scalar_type() &&
          group.to[0].device() == to.device())
        return group;
    return groups_.emplace_back(Group{{}, {}, versioned});
  }

  std::vector<Group> groups_;
  Memory written_, read_;
};

}  // namespace

void RegionExecutable::write_back(Call& call) const {
  PlainCopies plain_copies;
  c10::SmallVector<at::Tensor, 4> unversioned;
  for (const Mutation& mutation : mutations_) {
    const at::Tensor &to = call.input(mutation.input), &from = call.values[static_cast<size_t>(mutation.slot)];
    if (mutation.unversioned) unversioned.push_back(to);
    for (uint32_t before = 1; before < mutation.versions; ++before) to.unsafeGetTensorImpl()->bump_version();
    if (to.is_same(from)) {  // the backend wrote it there
      if (!mutation.unversioned && !to.is_inference()) to.unsafeGetTensorImpl()->bump_version();
      continue;
    }
    const bool flows = inputs_[static_cast<size_t>(mutation.input)].tangent >= 0;
    const bool recorded = !mutation.no_grad && (flows || c10::GradMode::is_enabled());
    const bool plain = !recorded || (!flows && !to.requires_grad());
    if (plain || mutation.unversioned) {
      plain_copies.add(to, from, !mutation.unversioned);
      continue;
    }
    plain_copies.finish();
    c10::AutoGradMode mode(recorded);
    to.copy_(from);
  }
  plain_copies.finish();
  for (const at::Tensor& it : unversioned) backend::note_silent_write(it);
}

void RegionExecutable::deliver(Call& call, PyObject** outputs) const {
  for (size_t i = 0; i < outputs_.size(); ++i) {
    const OutputPlan& plan = outputs_[i];
    if (plan.aliasing == Aliasing::ViewOfInput)
      call.results[i] = make_view(call.input(plan.of), plan, call.symbols);
    else if (plan.aliasing == Aliasing::ViewOfOutput)
      call.results[i] = make_view(call.results[static_cast<size_t>(plan.of)], plan, call.symbols);
  }
  for (size_t i = 0; i < outputs_.size(); ++i) {
    const OutputPlan& plan = outputs_[i];
    outputs[i] = plan.aliasing == Aliasing::Input ? Py_NewRef(call.inputs[plan.of])
                                                  : wrap_output(std::move(call.results[i]), plan);
    if (!outputs[i]) throw python_error();
  }
  if (!call.node) return;
  for (int gradient : leaf_gradients_) {
    const auto i = static_cast<size_t>(gradient);
    call.node->next_edges()[i] = torch::autograd::impl::gradient_edge(THPVariable_Unpack(outputs[gradients_[i].plan]));
  }
}

}  // namespace graphlift::torch_layer
