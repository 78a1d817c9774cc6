// Owns: rows and rules for torch's override protocol: who asks whether functions are overridden, and where the calls of
// a program are recorded that way (torch/program_calls.h), which the program must not notice.
#include <cstring>

#include "capture/attributes.h"
#include "capture/callables.h"
#include "capture/calls.h"
#include "capture/dynamo_calls.h"
#include "cpython/hook.h"

namespace graphlift::capture {

namespace {

// The program, and modules that decide between kernels of theirs by it, run as in eager; torch's functions let their
// call be seen.
bool decides_by_it(Capture& c) {
  if (!in_torch(c)) return true;
  PyObject* globals = c.frames.back().globals();
  PyObject* name = globals ? PyDict_GetItemString(globals, "__name__") : nullptr;
  const char* text = name && PyUnicode_Check(name) ? PyUnicode_AsUTF8(name) : nullptr;
  return text && std::strncmp(text, "torch.nn.modules.", 17) == 0;
}

Ref rule_is_overridden(Capture& c, const CallArgs& call) {
  torch_layer::ProgramCalls* calls = c.tracer->calls();
  auto ask = [&] { return run_prepared(c, call, kShallow); };
  return calls && decides_by_it(c) ? calls->hidden(ask) : ask();
}

Ref rule_modes(Capture& c, const CallArgs& call) {
  torch_layer::ProgramCalls* calls = c.tracer->calls();
  auto ask = [&] { return run_prepared(c, call, kPure); };
  return calls ? calls->hidden(ask) : ask();
}

// handle_torch_function(public_api, relevant_args, *args, **kwargs): a function in Python found itself overridden.
Ref rule_handle(Capture& c, const CallArgs& call) {
  torch_layer::ProgramCalls* calls = c.tracer->calls();
  if (!calls || !calls->watching() || call.nargs < 2) {
    if (know_function(c, call.callable) < 0) return Ref();
    return plain_call(call);
  }
  PyObject* function = call.args[0];
  const CallArgs inner{function, call.args + 2, call.nargs - 2, call.kwnames};
  auto body = [&] { return graphlift::capture::call(c, function, inner.args, inner.nargs, inner.kwnames); };
  if (!PyFunction_Check(function) || !torch_layer::is_trusted_function(function)) {
    calls->refuse("a function of the program's own that may be overridden: " + describe(function));
    return calls->hidden(body);
  }
  const Ref args = Ref::steal(PyTuple_New(inner.nargs)), kwargs = Ref::steal(PyDict_New());
  if (!args || !kwargs) return Ref();
  for (Py_ssize_t i = 0; i < inner.nargs; ++i) PyTuple_SET_ITEM(args.get(), i, Py_NewRef(inner.args[i]));
  for (Py_ssize_t i = 0; inner.kwnames && i < PyTuple_GET_SIZE(inner.kwnames); ++i)
    if (PyDict_SetItem(kwargs.get(), PyTuple_GET_ITEM(inner.kwnames, i), inner.args[inner.nargs + i]) < 0) return Ref();
  return calls->call(function, args.get(), kwargs.get(), body);
}

}  // namespace

const Family& torch_function_callables() {
  static const Family rows = {
      {"torch._C._has_torch_function", kShallow, rule_is_overridden},
      {"torch._C._has_torch_function_unary", kShallow, rule_is_overridden},
      {"torch._C._has_torch_function_variadic", kShallow, rule_is_overridden},
      {"torch._C._len_torch_function_stack", 0, rule_modes},
      {"torch._C._is_torch_function_mode_enabled", 0, rule_modes},
      {"torch.overrides.handle_torch_function", 0, rule_handle},
  };
  return rows;
}

}  // namespace graphlift::capture
