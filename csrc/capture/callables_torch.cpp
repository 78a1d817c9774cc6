// Owns: rows and rules for torch's C functions that are no operators: queries, ambient setters, and what must not run.
#include "capture/arrays.h"
#include "capture/attributes.h"
#include "capture/c_calls.h"
#include "capture/callables.h"
#include "capture/calls.h"
#include "capture/checkpoints.h"
#include "capture/computed_arrays.h"
#include "capture/containers.h"
#include "capture/dynamo_calls.h"
#include "capture/gradient_hooks.h"
#include "capture/gradients.h"
#include "cpython/hook.h"
#include "cpython/imported.h"
#include "torch/ambient_state.h"
#include "torch/any_layout.h"
#include "torch/dispatch_mode.h"

namespace graphlift::capture {

namespace {

// Some setters may be overridden as operators are: recorded by hand instead.
Ref hidden_call(Capture& c, const CallArgs& call) {
  return c.tracer->calls() ? c.tracer->calls()->hidden([&] { return plain_call(call); }) : plain_call(call);
}

// The object keeps what was on before in itself; behind the region its setter's plain form stands for it.
Ref rule_function_switch(Capture& c, const CallArgs& call) {
  Ref result = plain_call(call);
  Ref setter = result ? cpython::imported("graphlift.replayed", "set_torch_function_state") : Ref();
  if (!setter) return setter;
  std::vector<Ref> args;
  args.push_back(Ref::steal(PyUnicode_FromString(torch_layer::AmbientState::function_state())));
  c.ambient_calls.emplace_back(std::move(setter), std::move(args));
  return result;
}

// requires_grad_(flag) on a tensor that has this flag.
bool asks_for_what_is(const CallArgs& call) {
  const Py_ssize_t given = call.nargs - 1 + (call.kwnames ? PyTuple_GET_SIZE(call.kwnames) : 0);
  Ref now = Ref::steal(PyObject_GetAttrString(call.args[0], "requires_grad"));
  if (!now) PyErr_Clear();
  return given <= 1 && now.get() == (given ? call.args[1] : Py_True);
}

Ref rule_requires_grad(Capture& c, const CallArgs& call) {
  if (call.nargs > 0 && c.tensor_of_stand_in.count(call.args[0])) {
    if (asks_for_what_is(call)) return Ref::borrow(call.args[0]);
    return break_here(c, "requires_grad_change", "a tensor from outside");
  }
  Ref result = plain_call(call);
  return c.pending ? Ref() : std::move(result);
}

Ref rule_break(Capture& c, const CallArgs& call) { return break_here(c, "unknown_callable", describe(call.callable)); }

// A stand-in is a view of what it was made of here, whatever the tensor behind it is.
Ref rule_is_view(Capture& c, const CallArgs& call) {
  if (call.nargs > 0 && c.tensor_of_stand_in.count(call.args[0])) return rule_break(c, call);
  Ref result = plain_call(call);
  return c.pending ? Ref() : std::move(result);
}

// Of a tensor from outside no one but itself can be given other memory.
Ref rule_memory(Capture& c, const CallArgs& call) {
  return call.nargs > 0 && torch_layer::is_stand_in(call.args[0]) && !c.tensor_of_stand_in.count(call.args[0])
             ? call_tensor_function(c, call)
             : rule_break(c, call);
}

Ref rule_numpy(Capture& c, const CallArgs& call) {
  const bool plain = call.nargs == 1 && !call.kwnames && torch_layer::is_stand_in(call.args[0]);
  Ref array = plain ? array_on(c, call.args[0]) : Ref();
  if (array || c.pending) return array;
  PyErr_Clear();
  return break_here(c, "numpy_of_tensor", describe(call.callable));
}

Ref rule_item(Capture& c, const CallArgs& call) {
  if (call.nargs == 1 && in_optimizer(c) && torch_layer::is_stand_in(call.args[0])) {
    Ref number = c.tracer->number_of(call.args[0]);
    if (number || PyErr_Occurred()) return number;
  }
  return break_here(c, "data_dependent_item", describe(call.callable));
}

Ref rule_array(Capture& c, const CallArgs& call) { return break_here(c, "numpy_of_tensor", describe(call.callable)); }

// Null without a break: not of an array that is followed.
Ref on_array(Capture& c, const CallArgs& call) {
  const bool array = call.nargs == 1 && !call.kwnames && is_array(call.args[0]);
  return array ? new_tensor_on(c, call.args[0]) : Ref();
}

Ref rule_from_numpy(Capture& c, const CallArgs& call) {
  Ref tensor = on_array(c, call);
  return tensor || c.pending ? std::move(tensor) : break_here(c, "unknown_callable", describe(call.callable));
}

// Of an array it makes a copy.
Ref rule_tensor(Capture& c, const CallArgs& call) {
  Ref tensor = on_array(c, call);
  if (!tensor) return c.pending ? Ref() : call_tensor_function(c, call);
  Ref copy = Ref::steal(PyObject_CallMethod(tensor.get(), "clone", nullptr));
  return c.pending ? Ref() : std::move(copy);
}

// A float that the graph computes becomes a tensor of the default dtype.
Ref rule_as_tensor(Capture& c, const CallArgs& call) {
  Ref tensor = on_array(c, call);
  if (tensor || c.pending) return tensor;
  if (call.nargs != 1 || !torch_layer::is_graph_float(call.args[0])) return call_tensor_function(c, call);
  const Ref number = c.tracer->number_tensor(call.args[0]);
  if (!number) return PyErr_Occurred() ? Ref() : break_here(c, "data_dependent_item", describe(call.callable));
  const Ref made = Ref::steal(PyObject_CallMethod(number.get(), "clone", nullptr));
  const Ref to = made ? Ref::steal(PyObject_GetAttrString(made.get(), "to")) : Ref();
  const Ref dtype = to ? cpython::imported("torch", "get_default_dtype") : Ref();
  const Ref wanted = dtype ? Ref::steal(PyObject_CallNoArgs(dtype.get())) : Ref();
  const Ref kwargs = wanted ? Ref::steal(Py_BuildValue("{sO}", "dtype", wanted.get())) : Ref();
  if (!kwargs) return Ref();
  for (Py_ssize_t i = 0; call.kwnames && i < PyTuple_GET_SIZE(call.kwnames); ++i)  // device, dtype
    if (PyDict_SetItem(kwargs.get(), PyTuple_GET_ITEM(call.kwnames, i), call.args[1 + i]) < 0) return Ref();
  const Ref none = Ref::steal(PyTuple_New(0));
  Ref result = none ? Ref::steal(PyObject_Call(to.get(), none.get(), kwargs.get())) : Ref();
  return c.pending ? Ref() : std::move(result);
}

Ref rule_none(Capture&, const CallArgs&) { return Ref::borrow(Py_None); }

// The recorder's own mode is on torch's stack meanwhile; the others are counted by the check of ambient state.
Ref rule_count_modes(Capture&, const CallArgs&) {
  return Ref::steal(PyLong_FromLongLong(torch_layer::foreign_modes()));
}

// The profiler's mark is made while capturing and is no part of the program. Its record can't be made again, so that no
// region ends between the two.
Ref rule_mark_begins(Capture& c, const CallArgs& call) {
  if (call.nargs != 1 || c.is_outside(call.args[0])) return break_here(c, "unknown_callable", describe(call.callable));
  cpython::HookScope nobody(nullptr);
  Ref profiler = cpython::imported("torch._ops", "ops.profiler");
  Ref name = profiler ? Ref::steal(PyObject_GetAttrString(call.args[0], "name")) : Ref();
  Ref record =
      name ? Ref::steal(PyObject_CallMethod(profiler.get(), "_record_function_enter_new", "O", name.get())) : Ref();
  if (!record || PyObject_SetAttrString(call.args[0], "record", record.get()) < 0) return Ref();
  return Ref::borrow(call.args[0]);
}

Ref rule_mark_ends(Capture& c, const CallArgs& call) {
  if (call.nargs != 4 || c.is_outside(call.args[0])) return break_here(c, "unknown_callable", describe(call.callable));
  return PyObject_SetAttrString(call.args[0], "record", Py_None) < 0 ? Ref() : Ref::borrow(Py_None);
}

// Of a contiguous batch torch makes one product of all rows, and else whatever computes the same.
Ref rule_linear(Capture& c, const CallArgs& call) {
  const torch_layer::AnyLayout any;
  return call_tensor_function(c, call);
}

// A class method bound to the class, which is args[0].
Ref rule_function_apply(Capture& c, const CallArgs& call) {
  Ref checkpointed = reentrant_checkpoint(c, call);
  if (checkpointed || c.pending || PyErr_Occurred()) return checkpointed;
  if (keeps_random_state(call))
    return break_here(c, "unknown_callable", "a checkpoint with reentry that keeps the random state");
  if (hangs_module_hooks(call.args[0]) && hooks_act(c)) return break_for_hooks(c, call);
  if (c.tracer->calls()) c.tracer->calls()->refuse("an autograd.Function: " + describe(call.args[0]));
  for (const char* part : {"forward", "backward", "setup_context"}) {
    Ref name = Ref::steal(PyUnicode_InternFromString(part));
    PyObject* found = c.type_lookup(reinterpret_cast<PyTypeObject*>(call.args[0]), name.get());
    Ref inner = found && Py_IS_TYPE(found, &PyStaticMethod_Type) ? Ref::steal(PyObject_GetAttrString(found, "__func__"))
                                                                 : Ref::borrow(found);
    if (inner && PyFunction_Check(inner.get()) && know_function(c, inner.get()) < 0) return Ref();
  }
  Ref result =
      Ref::steal(PyObject_Vectorcall(call.callable, call.args + 1, static_cast<size_t>(call.nargs - 1), call.kwnames));
  return c.pending ? Ref() : std::move(result);
}

}  // namespace

Ref ambient_call(Capture& c, const CallArgs& call) {
  if (call.kwnames) return break_here(c, "ambient_change", describe(call.callable));
  std::vector<Ref> args;
  for (Py_ssize_t i = 0; i < call.nargs; ++i) {
    if (!is_value_constant(call.args[i]) && !is_identity_constant(call.args[i]) &&
        !torch_layer::is_device(call.args[i]))
      return break_here(c, "ambient_change", describe(call.callable));
    args.push_back(Ref::borrow(call.args[i]));
  }
  Ref result = hidden_call(c, call);
  if (result && c.tracer->calls()) c.tracer->calls()->note(call.callable, args);
  if (result) c.ambient_calls.emplace_back(Ref::borrow(call.callable), std::move(args));
  return result;
}

const Family& torch_callables() {
  static const Family rows = {
      // queries; the state they read is guarded by ambient_check
      {"torch._C._get_tracing_state", 0, nullptr},
      {"torch._C._log_api_usage_once", 0, rule_none},
      {"torch._C._log_api_usage_metadata", 0, rule_none},
      {"torch._C.is_grad_enabled", 0, grad_mode_call},
      {"torch._C.is_inference_mode_enabled", 0, nullptr},
      {"torch._C.is_autocast_enabled", 0, nullptr},
      {"torch._C.is_autocast_cpu_enabled", 0, nullptr},
      {"torch._C.is_autocast_cache_enabled", 0, nullptr},
      {"torch._C.get_autocast_dtype", 0, nullptr},
      {"torch._C.get_autocast_gpu_dtype", 0, nullptr},
      {"torch._C.get_autocast_cpu_dtype", 0, nullptr},
      {"torch._C._is_autocast_available", 0, nullptr},
      {"torch._C._is_any_autocast_enabled", 0, nullptr},
      {"torch._C.get_default_dtype", 0, nullptr},
      {"torch._C._get_default_device", 0, nullptr},
      {"torch._C._is_torch_function_enabled", 0, nullptr},
      {"torch._C._is_torch_function_all_disabled", 0, nullptr},
      {"torch._C._len_torch_dispatch_stack", 0, rule_count_modes},
      {"torch._C._are_functorch_transforms_active", 0, nullptr},
      {"torch._C._is_tracing", 0, nullptr},
      {"torch._C._get_cudnn_enabled", 0, nullptr},
      {"torch._C._get_cudnn_benchmark", 0, nullptr},
      {"torch._C._get_cudnn_deterministic", 0, nullptr},
      {"torch._C._get_cudnn_allow_tf32", 0, nullptr},
      {"torch._C._get_mkldnn_enabled", 0, nullptr},
      {"torch._C._get_flash_sdp_enabled", 0, nullptr},
      {"torch._C._get_mem_efficient_sdp_enabled", 0, nullptr},
      {"torch._C._get_math_sdp_enabled", 0, nullptr},
      {"torch._C._get_cudnn_sdp_enabled", 0, nullptr},
      {"torch._C._get_overrideable_sdp_enabled", 0, nullptr},
      {"torch._C._get_deterministic_algorithms", 0, nullptr},
      {"torch._C._get_deterministic_algorithms_warn_only", 0, nullptr},
      {"torch._C._get_float32_matmul_precision", 0, nullptr},
      {"torch._C._cuda_isCurrentStreamCapturing", 0, nullptr},
      {"torch._C._cuda_getDeviceCount", 0, nullptr},
      {"torch._C._cuda_getDevice", 0, nullptr},
      {"torch._C._get_accelerator", 0, nullptr},
      {"torch._C._accelerator_getAccelerator", 0, nullptr},
      {"torch._C._group_tensors_by_device_and_dtype", 0, nullptr},
      {"torch._C._is_multithreading_enabled", 0, nullptr},
      {"torch._C._get_privateuse1_backend_name", 0, nullptr},
      {"torch._C._has_cuda", 0, nullptr},
      {"torch._C._is_view_replay_enabled", 0, nullptr},
      {"torch._C._VariableFunctions.result_type", kSymbolic, nullptr},
      {"torch._C._VariableFunctions.can_cast", 0, nullptr},
      {"torch._C._VariableFunctions.promote_types", 0, nullptr},
      // ambient setters
      {"torch._C._set_grad_enabled", kAmbient, ambient_call},
      {"torch.device.__enter__", kAmbient, ambient_call},
      {"torch.device.__exit__", kAmbient, ambient_call},
      {"torch._C.set_autocast_enabled", kAmbient, ambient_call},
      {"torch._C.set_autocast_cpu_enabled", kAmbient, ambient_call},
      {"torch._C.set_autocast_dtype", kAmbient, ambient_call},
      {"torch._C.set_autocast_cpu_dtype", kAmbient, ambient_call},
      {"torch._C.set_autocast_gpu_dtype", kAmbient, ambient_call},
      {"torch._C.set_autocast_cache_enabled", kAmbient, ambient_call},
      {"torch._C._set_sdp_use_flash", kAmbient, ambient_call},
      {"torch._C._set_sdp_use_mem_efficient", kAmbient, ambient_call},
      {"torch._C._set_sdp_use_math", kAmbient, ambient_call},
      {"torch._C._set_sdp_use_cudnn", kAmbient, ambient_call},
      {"torch._C._set_sdp_use_overrideable", kAmbient, ambient_call},
      {"torch._C.autocast_increment_nesting", kAmbient, ambient_call},
      {"torch._C.autocast_decrement_nesting", kAmbient, ambient_call},
      {"torch._C.clear_autocast_cache", kAmbient, ambient_call},
      {"torch._C.DisableTorchFunctionSubclass.__enter__", 0, rule_function_switch},
      {"torch._C.DisableTorchFunctionSubclass.__exit__", 0, rule_function_switch},
      // what needs data, or changes tensors from outside behind the recording's back
      {"torch._C.TensorBase.item", 0, rule_item},
      {"torch._C.TensorBase.tolist", 0, rule_item},
      {"torch._C.TensorBase.numpy", 0, rule_numpy},
      {"torch._C.TensorBase.data_ptr", 0, rule_break},
      {"torch._C.TensorBase.requires_grad_", 0, rule_requires_grad},
      {"torch._C.TensorBase.retain_grad", 0, rule_break},
      {"torch._C.TensorBase._is_view", 0, rule_is_view},
      {"torch._C.TensorBase.set_", 0, rule_memory},
      {"torch._C.TensorBase.resize_", 0, rule_memory},
      {"torch._C.TensorBase.apply_", 0, rule_break},
      {"torch._C.TensorBase.map_", 0, rule_break},
      {"torch._C.TensorBase.pin_memory", 0, rule_break},
      {"torch._C.TensorBase.untyped_storage", 0, rule_break},
      {"torch._C.TensorBase._make_subclass", 0, rule_break},
      {"torch._C.TensorBase._make_wrapper_subclass", 0, rule_break},
      {"torch._C.TensorBase.as_subclass", 0, rule_break},
      {"torch._tensor.Tensor.__array__", 0, rule_array},
      {"torch._tensor.Tensor.__dlpack__", 0, rule_array},
      {"torch._tensor.Tensor.share_memory_", 0, rule_break},
      {"torch._tensor.Tensor.storage", 0, rule_break},
      {"torch._tensor.Tensor.__deepcopy__", 0, rule_break},
      {"torch._tensor.Tensor.__reduce_ex__", 0, rule_break},
      {"torch._tensor.Tensor.__repr__", 0, rule_break},
      {"torch.autograd.graph._engine_run_backward", 0, run_engine},
      {"torch.nn.parameter.Parameter.__new__", 0, rule_break},
      {"torch._C._FunctionBase.apply", 0, rule_function_apply},
      {"torch._C._FunctionBase.name", 0, nullptr},
      {"torch._C._FunctionBase.register_hook", 0, rule_hook},
      {"torch._tensor.Tensor.register_hook", 0, rule_tensor_hook},
      {"torch._tensor.Tensor.register_post_accumulate_grad_hook", 0, rule_tensor_hook},
      {"torch.from_numpy", 0, rule_from_numpy},
      {"torch.as_tensor", 0, rule_as_tensor},
      {"torch.tensor", 0, rule_tensor},
      {"torch.compiler.is_compiling", 0, rule_is_compiling},
      {"torch.autograd.profiler.record_function.__enter__", 0, rule_mark_begins},
      {"torch.autograd.profiler.record_function.__exit__", 0, rule_mark_ends},
      {"torch._C._nn.linear", 0, rule_linear},
      {"torch.save", 0, rule_break},
      {"torch.load", 0, rule_break},
  };
  return rows;
}

}  // namespace graphlift::capture
