// Owns: see handled.h.
#include "capture/handled.h"

namespace graphlift::capture {

namespace {

class NothingIsHandled final : public guards::LeafCheck {
 public:
  bool check(PyObject*, int64_t*) const override { return !handled_now(); }
  std::string text(const std::string&) const override { return "sys.exc_info() tells of no exception"; }
  std::string explain(PyObject*) const override { return "the call is made while an exception is handled"; }
};

}  // namespace

Ref handled_now() {
  Ref now = Ref::steal(PyErr_GetHandledException());
  return now.get() == Py_None ? Ref() : now;
}

void guard_nothing_handled(Capture& capture) { capture.guards.add_global(std::make_unique<NothingIsHandled>()); }

bool guard_context(Capture& capture, PyObject* exception) {
  if (capture.is_outside(exception)) return true;
  PyObject* context = reinterpret_cast<PyBaseExceptionObject*>(exception)->context;
  if (context) return context != capture.handled_before || capture.is_outside(context);
  if (capture.handled_before == Py_None) guard_nothing_handled(capture);
  return true;
}

int may_raise(Capture& capture, PyObject* exception, PyObject* cause) {
  const Ref handled = handled_now();
  if (!handled && capture.handled_before == Py_None && (!exception || capture.is_outside(exception)))
    guard_nothing_handled(capture);
  if (!exception && handled.get() == capture.handled_before)
    return break_status(capture, "unknown_callable", "raise where an exception from outside is handled");
  if (exception && capture.is_outside(exception) && (cause || (handled && handled.get() != exception)))
    return break_status(capture, "unsupported_store", Py_TYPE(exception)->tp_name + std::string(".__context__"));
  return 0;
}

}  // namespace graphlift::capture
