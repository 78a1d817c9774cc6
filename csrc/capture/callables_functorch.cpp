// Owns: rows and rules for the C functions of functorch and of forward-mode gradients: levels are opened and closed on
// stand-ins, so that torch's own transforms reach the recorder. Must not: let a level outlive its region.
#include "capture/attributes.h"
#include "capture/c_proxies.h"
#include "capture/callables.h"
#include "capture/calls.h"
#include "capture/gradient_hooks.h"
#include "cpython/hook.h"

namespace graphlift::capture {

namespace {

// The root's own level could be left open at a break: only functions that it calls open some.
Ref rule_open(Capture& c, const CallArgs& call) {
  if (c.tracer->calls()) c.tracer->calls()->refuse("a transform of torch.func");
  if (c.frames.size() < 2) return break_here(c, "unknown_callable", describe(call.callable));
  Ref level = run_prepared(c, call, kSymbolic);
  if (level) c.open_levels.push_back(c.root_instructions());
  return level;
}

// torch.inference_mode(mode), entered and left.
Ref rule_begin_inference(Capture& c, const CallArgs& call) {
  const Ref name = Ref::steal(PyUnicode_InternFromString("mode"));
  const Ref mode = call.nargs == 1 && name ? get_attr(c, call.args[0], name.get()) : Ref();
  if (!mode) return PyErr_Occurred() || c.pending ? Ref() : break_here(c, "ambient_change", describe(call.callable));
  if (!PyBool_Check(mode.get()) || c.tracer->calls()) return break_here(c, "ambient_change", describe(call.callable));
  c.tracer->begin_inference(mode.get() == Py_True);
  c.open_levels.push_back(c.root_instructions());
  return Ref::borrow(Py_None);
}

Ref rule_end_inference(Capture& c, const CallArgs& call) {
  if (!c.tracer->end_inference()) return break_here(c, "ambient_change", describe(call.callable));
  c.open_levels.pop_back();
  return Ref::borrow(Py_None);
}

Ref rule_close(Capture& c, const CallArgs& call) {
  if (c.open_levels.empty()) return break_here(c, "unknown_callable", describe(call.callable));
  Ref level = run_prepared(c, call, kPure);
  if (level) c.open_levels.pop_back();
  return level;
}

// What autograd saves from now on goes through them.
Ref rule_push_saved_hooks(Capture& c, const CallArgs& call) {
  if (call.nargs != 2 || call.kwnames || hooks_act(c)) return break_for_hooks(c, call);
  const Ref pack = hook_proxy(call.args[0]), unpack = hook_proxy(call.args[1]);
  if (!pack || !unpack) return Ref();
  PyObject* args[] = {pack.get(), unpack.get()};
  return rule_open(c, {call.callable, args, 2, nullptr});
}

// Registers decompositions with torch, once in the process: no part of the program.
Ref rule_load_decompositions(Capture& c, const CallArgs& call) {
  const TorchForReal real(c);
  return Ref::steal(PyObject_Vectorcall(call.callable, call.args, static_cast<size_t>(call.nargs), call.kwnames));
}

// torch.func.grad switches a compiled engine off that is off anyway.
Ref rule_compiled_engine(Capture& c, const CallArgs& call) {
  if (call.nargs != 2 || call.kwnames || call.args[0] != Py_None)
    return break_here(c, "ambient_change", describe(call.callable));
  Ref before = run_prepared(c, call, kPure);
  const bool off = before && PyTuple_Check(before.get()) && PyTuple_GET_SIZE(before.get()) == 2 &&
                   PyTuple_GET_ITEM(before.get(), 0) == Py_None && PyTuple_GET_ITEM(before.get(), 1) == call.args[1];
  if (!before || off) return before;
  Ref undone = Ref::steal(PyObject_CallObject(call.callable, before.get()));
  return undone ? break_here(c, "ambient_change", describe(call.callable)) : undone;
}

}  // namespace

const Family& functorch_callables() {
  static const Family rows = {
      {"torch.autograd.grad_mode.inference_mode.__enter__", 0, rule_begin_inference},
      {"torch.autograd.grad_mode.inference_mode.__exit__", 0, rule_end_inference},
      {"torch._C._functorch._vmap_increment_nesting", 0, rule_open},
      {"torch._C._functorch._vmap_decrement_nesting", 0, rule_close},
      {"torch._C._functorch._grad_increment_nesting", 0, rule_open},
      {"torch._C._functorch._grad_decrement_nesting", 0, rule_close},
      {"torch._C._functorch._jvp_increment_nesting", 0, rule_open},
      {"torch._C._functorch._jvp_decrement_nesting", 0, rule_close},
      {"torch._C._enter_dual_level", 0, rule_open},
      {"torch._C._exit_dual_level", 0, rule_close},
      {"torch._functorch.predispatch.lazy_load_decompositions", 0, rule_load_decompositions},
      {"torch._C._functorch._add_batch_dim", 0, nullptr},
      {"torch._C._functorch._remove_batch_dim", kSymbolic, nullptr},
      {"torch._C._functorch._unwrap_batched", 0, nullptr},
      {"torch._C._functorch._wrap_for_grad", 0, nullptr},
      {"torch._C._functorch._unwrap_for_grad", 0, nullptr},
      {"torch._C._functorch.get_unwrapped", 0, nullptr},
      {"torch._C._functorch.current_level", 0, nullptr},
      {"torch._C._functorch.maybe_current_level", 0, nullptr},
      {"torch._C._functorch.peek_interpreter_stack", 0, nullptr},
      {"torch._C._functorch.unwrap_if_dead", 0, nullptr},
      {"torch._C._functorch.is_dead_tensor_wrapper", 0, nullptr},
      {"torch._C._functorch.is_functorch_wrapped_tensor", 0, nullptr},
      {"torch._C._functorch.is_gradtrackingtensor", 0, nullptr},
      {"torch._C._functorch.is_batchedtensor", 0, nullptr},
      {"torch._C._functorch.is_legacy_batchedtensor", 0, nullptr},
      {"torch._C._functorch.is_functionaltensor", 0, nullptr},
      {"torch._C._functorch.maybe_get_level", 0, nullptr},
      {"torch._C._functorch.maybe_get_bdim", 0, nullptr},
      {"torch._C._functorch.get_inplace_requires_grad_allowed", 0, nullptr},
      {"torch._C._functorch.set_inplace_requires_grad_allowed", kAmbient, ambient_call},
      {"torch._C._functorch.get_single_level_autograd_function_allowed", 0, nullptr},
      {"torch._C._functorch.set_single_level_autograd_function_allowed", kAmbient, ambient_call},
      {"torch._C._autograd._saved_tensors_hooks_get_disabled_error_message", 0, nullptr},
      {"torch._C._autograd._saved_tensors_hooks_disable", kAmbient, ambient_call},
      {"torch._C._autograd._saved_tensors_hooks_enable", kAmbient, ambient_call},
      {"torch._C._autograd._saved_tensors_hooks_is_enabled", 0, nullptr},
      {"torch._C._autograd._push_saved_tensors_default_hooks", 0, rule_push_saved_hooks},
      {"torch._C._autograd._pop_saved_tensors_default_hooks", 0, rule_close},
      {"torch._C._dynamo.autograd_compiler.set_autograd_compiler", 0, rule_compiled_engine},
      {"torch._C._is_fwd_grad_enabled", 0, nullptr},
      {"torch._C._set_fwd_grad_enabled", kAmbient, ambient_call},
  };
  return rows;
}

}  // namespace graphlift::capture
