// Owns: calls that show something to people: replayed in program order behind the region.
// Must not: defer a call whose result the program uses, or whose text depends on a tensor or on an object that may
// change.
#include "capture/attributes.h"
#include "capture/callables.h"
#include "capture/calls.h"
#include "cpython/hook.h"

namespace graphlift::capture {

namespace {

bool is_fixed(PyObject* object) { return is_value_constant(object) || is_identity_constant(object); }

// The callable with its keyword arguments bound.
Ref with_keywords(const CallArgs& call) {
  if (!call.kwnames || PyTuple_GET_SIZE(call.kwnames) == 0) return Ref::borrow(call.callable);
  Ref functools = Ref::steal(PyImport_ImportModule("functools"));
  Ref partial = functools ? Ref::steal(PyObject_GetAttrString(functools.get(), "partial")) : Ref();
  if (!partial) return partial;
  std::vector<PyObject*> args{call.callable};
  args.insert(args.end(), call.args + call.nargs, call.args + call.nargs + PyTuple_GET_SIZE(call.kwnames));
  return Ref::steal(PyObject_Vectorcall(partial.get(), args.data(), 1, call.kwnames));
}

// Whether a logger of logging's own classes shows a record of the method's level; -1: not known. Asking fills the
// logger's cache, as the program's own call does.
int is_shown(const CallArgs& call) {
  struct Level {
    const char* method;
    int level;
  };
  static constexpr Level kLevels[] = {{"debug", 10}, {"info", 20},  {"warning", 30},
                                      {"warn", 30},  {"error", 40}, {"critical", 50}};
  PyObject* module = PyDict_GetItemString(PyImport_GetModuleDict(), "logging");
  if (!module || call.nargs == 0) return -1;
  Ref plain = Ref::steal(PyObject_GetAttrString(module, "Logger"));
  Ref root = Ref::steal(PyObject_GetAttrString(module, "RootLogger"));
  auto* type = reinterpret_cast<PyObject*>(Py_TYPE(call.args[0]));
  Ref name = Ref::steal(PyObject_GetAttrString(call.callable, "__name__"));
  if (!plain || !root || !name || (type != plain.get() && type != root.get())) {
    PyErr_Clear();
    return -1;
  }
  cpython::HookScope nobody(nullptr);
  for (const Level& row : kLevels) {
    if (PyUnicode_CompareWithASCIIString(name.get(), row.method) != 0) continue;
    Ref shown = Ref::steal(PyObject_CallMethod(call.args[0], "isEnabledFor", "i", row.level));
    if (!shown) PyErr_Clear();
    return shown ? PyObject_IsTrue(shown.get()) : -1;
  }
  return -1;
}

}  // namespace

// A record that nobody sees: the logger's own code finds that out, with what it reads guarded.
Ref log_call(Capture& capture, const CallArgs& call) {
  if (is_shown(call) != 0) return defer_call(capture, call);
  if (know_function(capture, call.callable) < 0) return Ref();
  return Ref::steal(PyObject_Vectorcall(call.callable, call.args, static_cast<size_t>(call.nargs), call.kwnames));
}

Ref defer_call(Capture& capture, const CallArgs& call) {
  const Py_ssize_t total = call.nargs + (call.kwnames ? PyTuple_GET_SIZE(call.kwnames) : 0);
  for (Py_ssize_t i = 0; i < total; ++i) {
    PyObject* arg = call.args[i];
    if (torch_layer::is_stand_in(arg)) return break_here(capture, "tensor_text", describe(call.callable));
    const bool receiver = i == 0 && capture.is_outside(arg) && !PyCFunction_Check(call.callable);
    if (!is_fixed(arg) && !receiver) return break_here(capture, "unknown_callable", describe(call.callable));
  }
  Ref callable = with_keywords(call);
  if (!callable) return callable;
  std::vector<Ref> args;
  for (Py_ssize_t i = 0; i < call.nargs; ++i) args.push_back(Ref::borrow(call.args[i]));
  capture.deferred_calls.emplace_back(std::move(callable), std::move(args));
  return Ref::borrow(Py_None);
}

}  // namespace graphlift::capture
