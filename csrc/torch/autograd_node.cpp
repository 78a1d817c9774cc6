// Owns: see autograd_node.h.
#include "torch/autograd_node.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/functions/basic_ops.h>
#include <torch/csrc/autograd/functions/utils.h>
#include <torch/csrc/autograd/python_cpp_function.h>

#include "base/error.h"
#include "base/gil.h"
#include "torch/convert.h"
#include "torch/executable_prune.h"
#include "torch/functorch.h"
#include "torch/objects.h"

namespace graphlift::torch_layer {
namespace {

constexpr const char* kNoDoubleBackward =
    "graphlift: a compiled region was differentiated twice (create_graph=True), which it does not support. Run this "
    "part in "
    "eager mode: mark the function with @graphlift.disable, or call it outside of graphlift.compile.";

// Gradients of gradients: first order results are there to use, and an attempt to go through them says what to do. The
// node keeps the edges of the real one, so that the engine does not leave it out as leading nowhere.
void forbid_double_backward(std::vector<at::Tensor>* gradients, torch::autograd::edge_list edges) {
  const NodePtr error = make_node<torch::autograd::Error>(kNoDoubleBackward, std::move(edges));
  for (at::Tensor& gradient : *gradients) {
    if (!gradient.defined()) continue;
    if (gradient.is_view() || gradient.requires_grad()) gradient = gradient.detach();
    torch::autograd::set_history(gradient, error);
  }
}

// The same values with the type's strides and dtype; a tensor that has them comes back itself.
at::Tensor laid_out(at::Tensor tensor, const ir::TensorType& type, std::span<const int64_t> symbols) {
  const c10::ScalarType dtype = to_torch(type.dtype);
  bool same = tensor.dim() == type.rank() && tensor.scalar_type() == dtype;
  c10::SmallVector<int64_t, 6> strides;
  for (int64_t i = 0; i < type.rank(); ++i) {
    strides.push_back(type.strides[static_cast<size_t>(i)].eval(symbols));
    if (same && tensor.size(i) > 1 && tensor.stride(i) != strides.back()) same = false;
  }
  if (same || tensor.numel() == 0) return tensor;
  return at::empty_strided(tensor.sizes(), strides, tensor.options().dtype(dtype)).copy_(tensor);
}

// The graph was recorded for a dense tangent with the output's own strides.
at::Tensor as_recorded(at::Tensor tangent, const ir::TensorType& type, std::span<const int64_t> symbols) {
  if (has_no_memory(tangent)) return tangent;
  if (tangent.layout() != c10::kStrided) tangent = tangent.to_dense();
  if (tangent._is_zerotensor()) tangent = at::zeros_like(tangent);
  return laid_out(tangent.resolve_conj().resolve_neg(), type, symbols);
}

}  // namespace

BackwardProgram::BackwardProgram(std::unique_ptr<ir::Graph> graph, std::vector<bool> shared,
                                 std::vector<at::Tensor> constants, std::shared_ptr<const backend::Backend> backend,
                                 backend::Options how, passes::PassOptions passes)
    : graph_(std::move(graph)),
      shared_(std::move(shared)),
      constants_(std::move(constants)),
      backend_(std::move(backend)),
      how_(std::move(how)),
      passes_(std::move(passes)) {
  const auto& inputs = graph_->inputs();
  GL_CHECK(inputs.size() >= saved(), "a backward graph with fewer inputs than saved values");
  for (size_t i = saved(); i < inputs.size(); ++i) tangents_.push_back(graph_->type({inputs[i], 0}));
  complete_ = {backend_->compile(*graph_, constants_, how_), read_by(*graph_)};
}

std::vector<bool> BackwardProgram::read_by(const ir::Graph& graph) const {
  std::vector<bool> reads(saved(), false);
  auto note = [&](const ir::ValueRef& value) {
    for (size_t i = 0; i < saved(); ++i) reads[i] = reads[i] || value.node == graph.inputs()[i];
  };
  for (const ir::Node& node : graph.nodes())
    for (const ir::Arg& arg : node.args) ir::for_each_value(arg, note);
  for (const ir::Arg& output : graph.outputs()) ir::for_each_value(output, note);
  return reads;
}

const BackwardProgram::Compiled& BackwardProgram::variant(const Variant& wanted) const {
  {
    std::lock_guard lock(mutex_);
    if (auto found = variants_.find(wanted); found != variants_.end()) return found->second;
  }
  // Without the lock: a backend that lets go of the GIL while it compiles waits for it afterwards, and whoever has it
  // then may want the lock. Two threads may both compile; the first to be done is kept.
  WithGil gil;
  std::unique_ptr<ir::Graph> graph = without_tangents(*graph_, saved(), wanted.defined);
  passes::run_passes(graph.get(), passes_);
  const auto backend = wanted.by_dispatcher ? backend::find_backend("reference") : backend_;
  Compiled made{backend->compile(*graph, constants_, how_), read_by(*graph)};
  std::lock_guard lock(mutex_);
  return variants_.try_emplace(wanted, std::move(made)).first->second;
}

const BackwardProgram::Compiled& BackwardProgram::compiled_for(const std::vector<at::Tensor>& tangents) const {
  bool complete = true;
  Variant wanted;
  for (const at::Tensor& tangent : tangents) {
    complete &= tangent.defined();
    wanted.by_dispatcher |= tangent.defined() && has_no_memory(tangent);
  }
  if (complete && !wanted.by_dispatcher) return complete_;
  for (const at::Tensor& tangent : tangents) wanted.defined.push_back(tangent.defined());
  return variant(wanted);
}

const BackwardSharing& BackwardProgram::sharing() const {
  std::lock_guard lock(mutex_);
  if (!sharing_) sharing_ = std::make_unique<const BackwardSharing>(backward_sharing(*graph_, saved()));
  return *sharing_;
}

at::Tensor BackwardProgram::as_saved(at::Tensor value, size_t index, std::span<const int64_t> symbols) const {
  if (!shared_[index]) return value;
  const ir::TensorType& recorded = type(index);
  bool same = value.dim() == recorded.rank() && value.device() == to_torch(recorded.device);
  for (int64_t d = 0; same && d < value.dim(); ++d)
    same = value.size(d) == recorded.sizes[static_cast<size_t>(d)].eval(symbols);
  TORCH_CHECK(same,
              "graphlift: a tensor that a backward reads was given data of another size or device since: it has sizes ",
              value.sizes(), " on ", value.device());
  return laid_out(std::move(value), recorded, symbols);
}

std::vector<at::Tensor> BackwardProgram::run(const Compiled& compiled, c10::SmallVectorImpl<at::Tensor>& inputs,
                                             std::vector<at::Tensor>&& tangents,
                                             std::span<const int64_t> symbols) const {
  BelowAutograd guard;
  for (size_t i = 0; i < tangents.size(); ++i)
    inputs.push_back(tangents[i].defined() ? as_recorded(std::move(tangents[i]), tangents_[i], symbols) : at::Tensor());
  std::vector<at::Tensor> gradients(this->gradients());
  compiled.program->run(inputs.data(), symbols.data(), gradients.data());
  return gradients;
}

void RegionNode::release_variables() {
  std::lock_guard lock(mutex_);
  if (std::exchange(releasing_, false) && !ran_.empty()) return;  // apply let go of what no other output needs
  if (program_->saved() == 0) return;  // as in eager, a node that saves nothing can run again
  saved_.clear();
  released_ = true;
}

// Eager has a node per operation: a second backward may not come to one that saved values and was in the first.
void RegionNode::refuse_what_was_freed(const ByTangent& now) const {
  const auto& shares = program_->sharing().shares;
  for (size_t i = 0; i < ran_.size(); ++i)
    for (size_t j = 0; ran_[i] && j < now.size(); ++j)
      TORCH_CHECK(!now[j] || !shares[i][j], torch::autograd::ERR_BACKWARD_TWICE);
}

// Saved values that are read by outputs which can still be differentiated. Empty: all have been.
std::vector<bool> RegionNode::needed_later() const {
  if (std::find(ran_.begin(), ran_.end(), false) == ran_.end()) return {};
  std::vector<bool> needed(saved_.size(), false);
  const BackwardSharing& sharing = program_->sharing();
  for (size_t k = 0; k < ran_.size(); ++k) {
    bool can_run = !ran_[k];
    for (size_t i = 0; i < ran_.size(); ++i) can_run = can_run && !(ran_[i] && sharing.shares[i][k]);
    for (size_t s = 0; can_run && s < needed.size(); ++s)
      if (sharing.reads[k][s]) needed[s] = true;
  }
  return needed;
}

torch::autograd::variable_list RegionNode::apply(torch::autograd::variable_list&& tangents) {
  std::lock_guard lock(mutex_);
  TORCH_CHECK(!released_, torch::autograd::ERR_BACKWARD_TWICE);
  ByTangent now;
  for (const at::Tensor& tangent : tangents) now.push_back(tangent.defined());
  if (std::find(now.begin(), now.end(), true) == now.end()) return torch::autograd::variable_list(num_outputs());
  if (!ran_.empty()) refuse_what_was_freed(now);

  const bool create_graph = c10::GradMode::is_enabled();
  torch::autograd::edge_list edges;
  if (create_graph) {
    edges = next_edges();
    for (const at::Tensor& tangent : tangents)
      if (tangent.defined() && tangent.requires_grad()) edges.push_back(torch::autograd::impl::gradient_edge(tangent));
  }
  c10::SmallVector<at::Tensor, 16> inputs;
  // As in eager, a value that was written over since is no error where no gradient needs it.
  const BackwardProgram::Compiled& compiled = program_->compiled_for(tangents);
  const std::span<const int64_t> symbols(symbols_.data(), symbols_.size());
  const bool releases = releasing_ && !saved_.empty();
  std::vector<bool> kept;
  if (releases) {
    ran_.resize(now.size(), false);
    for (size_t i = 0; i < now.size(); ++i) ran_[i] = ran_[i] || now[i];
    kept = needed_later();
  }
  for (size_t i = 0; i < saved_.size(); ++i) {
    inputs.push_back(compiled.reads[i] ? program_->as_saved(saved_[i].unpack(getptr()), i, symbols) : at::Tensor());
    if (releases && (kept.empty() || !kept[i])) saved_[i].reset_data();
  }
  auto gradients = program_->run(compiled, inputs, std::move(tangents), symbols);
  if (create_graph) forbid_double_backward(&gradients, std::move(edges));
  return gradients;
}

void register_node_class() {
  namespace ag = torch::autograd;
  static PyTypeObject type;
  static PyGetSetDef properties[] = {{"next_functions", ag::THPCppFunction_next_functions, nullptr, nullptr, nullptr},
                                     {"requires_grad", ag::THPCppFunction_requires_grad, nullptr, nullptr, nullptr},
                                     {"metadata", ag::THPCppFunction_metadata, nullptr, nullptr, nullptr},
                                     {"_input_metadata", ag::THPCppFunction_input_metadata, nullptr, nullptr, nullptr},
                                     {nullptr}};
  static PyMethodDef methods[] = {{"_register_hook_dict", ag::THPCppFunction_register_hook_dict, METH_O, nullptr},
                                  {"register_hook", ag::THPCppFunction_register_hook, METH_O, nullptr},
                                  {"register_prehook", ag::THPCppFunction_register_prehook, METH_O, nullptr},
                                  {"name", ag::THPCppFunction_name, METH_NOARGS, nullptr},
                                  {"_sequence_nr", ag::THPCppFunction_sequence_nr, METH_NOARGS, nullptr},
                                  {nullptr}};
  ag::_initFunctionPyTypeObject(type, "GraphliftBackward", properties, methods);
  ag::registerCppFunction(typeid(RegionNode), &type);
}

}  // namespace graphlift::torch_layer
