// Owns: hooks on gradients while capturing: registered on stand-ins, and called by the engine where it runs on them.
// The backward of what a region returns runs once for all its calls: there a hook may compute, and do nothing else.
// Must not: register anything on a tensor from outside.
#pragma once

#include "capture/callables.h"
#include "torch/gradient_hooks.h"

namespace graphlift::capture {

// A hook is called by the engine.
Ref call_hook(Capture& capture, PyObject* hook, PyObject* args, PyObject* kwargs);
// Whether something may be changed now. False after a break: a hook runs that a backward behind the region calls again.
bool may_act(Capture& capture);

// An earlier attempt met a hook that acts: none is registered in this one.
bool hooks_act(const Capture& capture);
Ref break_for_hooks(Capture& capture, const CallArgs& call);

// Tensor.register_hook, Tensor.register_post_accumulate_grad_hook; register_hook of a node in the graph.
Ref rule_tensor_hook(Capture& capture, const CallArgs& call);
Ref rule_hook(Capture& capture, const CallArgs& call);

// A module's hooks on its backward look for their own node in the graph and hang themselves into it.
bool hangs_module_hooks(PyObject* function_class);
bool is_module_hook_node(const Capture& capture, PyObject* node);

// Hooks of tensors from outside on their stand-ins, while the program runs the engine.
class HooksOfLeaves {
 public:
  explicit HooksOfLeaves(Capture& capture) : capture_(capture) {}
  ~HooksOfLeaves();
  HooksOfLeaves(const HooksOfLeaves&) = delete;
  HooksOfLeaves& operator=(const HooksOfLeaves&) = delete;

  // False: error or break.
  bool add(PyObject* stand_in, const torch_layer::GradientHooks& hooks);

 private:
  bool add(PyObject* stand_in, const char* method, const std::vector<Ref>& hooks);

  Capture& capture_;
  std::vector<Ref> handles_;
};

}  // namespace graphlift::capture
