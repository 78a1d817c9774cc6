// Owns: see gradient_hooks.h.
#include "capture/gradient_hooks.h"

#include <string_view>

#include "capture/c_proxies.h"
#include "capture/calls.h"
#include "capture/deferred.h"
#include "capture/dynamo_calls.h"
#include "cpython/hook.h"

namespace graphlift::capture {

namespace {

void refuse_acts(Capture& capture) {
  if (capture.seen) {
    capture.seen->hooks_act = true;
    capture.again = true;
  }
  break_here(capture, "hook_acts");
}

// Of torch's own Python code, on stand-ins or with hooks in its containers.
Ref call_unobserved(const CallArgs& call) {
  const cpython::HookScope nobody(nullptr);
  return Ref::steal(PyObject_Vectorcall(call.callable, call.args, static_cast<size_t>(call.nargs), nullptr));
}

}  // namespace

Ref call_hook(Capture& capture, PyObject* hook, PyObject* args, PyObject* kwargs) {
  const bool again = capture.deriving;
  const size_t before = acts_so_far(capture);
  if (again) capture.hooks.push_back(capture.frames.size());
  Ref result = call_ex(capture, hook, args, kwargs);
  if (again) capture.hooks.pop_back();
  if (again && !capture.pending && acts_so_far(capture) != before) refuse_acts(capture);
  return capture.pending ? Ref() : std::move(result);
}

// torch's own code keeps what it needs between two hooks of a module.
bool may_act(Capture& capture) {
  if (capture.hooks.empty() || (capture.frames.size() > capture.hooks.back() && in_torch(capture))) return true;
  if (!capture.pending) refuse_acts(capture);
  return false;
}

bool hooks_act(const Capture& capture) { return capture.seen && capture.seen->hooks_act; }

Ref break_for_hooks(Capture& capture, const CallArgs& call) {
  return hooks_act(capture) ? break_here(capture, "hook_acts")
                            : break_here(capture, "unknown_callable", describe(call.callable));
}

Ref rule_hook(Capture& capture, const CallArgs& call) {
  if (call.nargs != 2 || call.kwnames || hooks_act(capture)) return break_for_hooks(capture, call);
  if (capture.tracer->calls()) capture.tracer->calls()->refuse("a hook on a gradient");
  const Ref proxy = hook_proxy(call.args[1]);
  if (!proxy) return proxy;
  PyObject* args[] = {call.args[0], proxy.get()};
  Ref handle = call_unobserved({call.callable, args, 2, nullptr});
  return capture.pending ? Ref() : std::move(handle);
}

Ref rule_tensor_hook(Capture& capture, const CallArgs& call) {
  const bool made_here =
      call.nargs > 0 && torch_layer::is_stand_in(call.args[0]) && !capture.tensor_of_stand_in.count(call.args[0]);
  return made_here ? rule_hook(capture, call) : break_here(capture, "unknown_callable", describe(call.callable));
}

bool hangs_module_hooks(PyObject* function_class) {
  return describe(function_class) == "torch.nn.modules._functions.BackwardHookFunction";
}

bool is_module_hook_node(const Capture& capture, PyObject* node) {
  return std::string_view(Py_TYPE(node)->tp_name) == "BackwardHookFunctionBackward" && in_torch(capture);
}

bool HooksOfLeaves::add(PyObject* stand_in, const char* method, const std::vector<Ref>& hooks) {
  for (const Ref& hook : hooks) {
    capture_.know(hook.get(), capture_.origins().root(guards::OriginKind::Constant, 0, hook.get()));
    const Ref proxy = hook_proxy(hook.get());
    const cpython::HookScope nobody(nullptr);
    Ref handle = proxy ? Ref::steal(PyObject_CallMethod(stand_in, method, "O", proxy.get())) : Ref();
    if (!handle) return false;
    handles_.push_back(std::move(handle));
  }
  return true;
}

namespace {

// The engine calls them on a thread of its own, that nobody watches.
bool lies_on_gpu(PyObject* tensor) {
  const Ref answer = Ref::steal(PyObject_GetAttrString(tensor, "is_cuda"));
  if (!answer) PyErr_Clear();
  return answer.get() != Py_False;
}

}  // namespace

bool HooksOfLeaves::add(PyObject* stand_in, const torch_layer::GradientHooks& hooks) {
  bool refused = hooks.others || lies_on_gpu(stand_in);
  for (const Ref& dict : hooks.dicts) refused |= capture_.is_outside(dict.get());  // the program looked at them
  if (refused) {
    break_here(capture_, "backward_call", "a parameter has a hook on its gradient");
    return false;
  }
  return add(stand_in, "register_hook", hooks.before) &&
         add(stand_in, "register_post_accumulate_grad_hook", hooks.after);
}

HooksOfLeaves::~HooksOfLeaves() {
  const SavedError error;
  const cpython::HookScope nobody(nullptr);
  for (const Ref& handle : handles_)
    if (!Ref::steal(PyObject_CallMethod(handle.get(), "remove", nullptr))) PyErr_Clear();
}

}  // namespace graphlift::capture
