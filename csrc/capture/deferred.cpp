// Owns: calls that show something to people: replayed in program order behind the region.
// Must not: defer a call whose result the program uses, or whose text depends on a tensor or on an object that may
// change.
#include "capture/callables.h"
#include "capture/calls.h"

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

}  // namespace

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
