// Owns: what a run of the autograd engine that the program asks for would reach.
// Must not: run the engine.
#include <torch/csrc/autograd/functions/accumulate_grad.h>
#include <torch/csrc/autograd/python_variable.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>
#include <string_view>
#include <typeinfo>
#include <unordered_set>

#include "torch/tracer_impl.h"

namespace graphlift::torch_layer {
namespace {

// A custom autograd.Function. Its class has no visible type information.
bool is_python_node(const torch::autograd::Node& node) {
  return std::string_view(typeid(node).name()).find("PyNode") != std::string_view::npos;
}

bool has_node_hooks(torch::autograd::Node& node) {
  return !node.tensor_pre_hooks().empty() || !node.pre_hooks().empty() || !node.post_hooks().empty() ||
         !node.retains_grad_hooks().empty() || node.tensor_post_acc_grad_hooks();
}

}  // namespace

Ref gradient_of(PyObject* tensor) {
  const at::Tensor& grad = THPVariable_Unpack(tensor).unsafeGetTensorImpl()->grad();
  return grad.defined() ? Ref::steal(THPVariable_Wrap(grad)) : Ref::borrow(Py_None);
}

std::vector<PyObject*> TracerImpl::sources(std::span<PyObject* const> tensors) {
  std::vector<PyObject*> found;
  std::vector<torch::autograd::Edge> edges;  // keeps accumulators alive
  std::vector<torch::autograd::Node*> open;
  std::unordered_set<torch::autograd::Node*> seen;
  auto visit = [&](const torch::autograd::Edge& edge) {
    if (edge.is_valid() && seen.insert(edge.function.get()).second) open.push_back(edge.function.get());
  };
  for (PyObject* object : tensors) {
    const at::Tensor& tensor = THPVariable_Unpack(object);
    if (tensor.requires_grad()) visit(edges.emplace_back(torch::autograd::impl::gradient_edge(tensor)));
  }
  while (!open.empty()) {
    torch::autograd::Node* node = open.back();
    open.pop_back();
    const auto outside = std::find_if(primals_.begin(), primals_.end(), [&](const Primal& primal) {
      return primal.seen.defined() && primal.seen.requires_grad() &&
             torch::autograd::impl::gradient_edge(primal.seen).function.get() == node;
    });
    if (outside != primals_.end()) {
      found.push_back(outside->stand_in.get());
      continue;
    }
    if (auto* leaf = dynamic_cast<torch::autograd::AccumulateGrad*>(node))
      found.push_back(Ref::steal(THPVariable_Wrap(leaf->variable)).get());  // the variable keeps it
    for (const torch::autograd::Edge& edge : node->next_edges()) visit(edge);
  }
  return found;
}

Tracer::Reached TracerImpl::reached(std::span<PyObject* const> roots) {
  recorder_.note_engine();
  if (calls_) calls_->refuse("the program runs the autograd engine");
  Reached result;
  std::vector<torch::autograd::Node*> open;
  std::unordered_set<torch::autograd::Node*> seen;
  bool on_cpu = true;
  auto visit = [&](const torch::autograd::Edge& edge) {
    if (edge.is_valid() && seen.insert(edge.function.get()).second) open.push_back(edge.function.get());
  };
  std::vector<torch::autograd::Edge> edges;  // keeps accumulators alive
  for (PyObject* root : roots) {
    const at::Tensor& tensor = THPVariable_Unpack(root);
    on_cpu &= tensor.is_cpu();
    if (tensor.requires_grad()) visit(edges.emplace_back(torch::autograd::impl::gradient_edge(tensor)));
  }
  while (!open.empty()) {
    torch::autograd::Node* node = open.back();
    open.pop_back();
    if (dynamic_cast<OutsideHistory*>(node)) result.refuse = "gradients flow into a tensor that was made before";
    // Threads of the engine's own run Python code that nobody watches.
    if (!on_cpu && (is_python_node(*node) || has_node_hooks(*node)))
      result.refuse = "Python code runs on a thread of the autograd engine";
    if (auto* leaf = dynamic_cast<torch::autograd::AccumulateGrad*>(node)) {
      const auto found = by_stand_in_.find(leaf->variable.unsafeGetTensorImpl());
      if (found != by_stand_in_.end())
        result.leaves.push_back(primals_[static_cast<size_t>(found->second)].stand_in.get());
    }
    for (const torch::autograd::Edge& edge : node->next_edges()) visit(edge);
  }
  return result;
}

}  // namespace graphlift::torch_layer
