// Owns: the check of frames that C code or a call enters while capturing.
// Must not: evaluate them (semantics.cpp).
#include "capture/attributes.h"
#include "capture/calls.h"

namespace graphlift::capture {

namespace {

// A function that C code found through a class: a special method of the first argument's type, guarded now.
bool found_on_type(Capture& capture, cpython::Frame& frame, PyObject* function) {
  PyObject* self = frame.code()->co_argcount > 0 ? frame.locals()[0] : nullptr;
  if (self && PyCell_Check(self)) self = PyCell_GET(self);
  if (!self) return false;
  PyTypeObject* types[] = {Py_TYPE(self), PyType_Check(self) ? reinterpret_cast<PyTypeObject*>(self) : nullptr};
  for (PyTypeObject* type : types) {
    if (!type) continue;
    PyObject* found = _PyType_Lookup(type, frame.code()->co_name);
    Ref inner = Ref::borrow(found);
    if (found && (Py_IS_TYPE(found, &PyStaticMethod_Type) || Py_IS_TYPE(found, &PyClassMethod_Type)))
      inner = Ref::steal(PyObject_GetAttrString(found, "__func__"));
    if (found && PyObject_TypeCheck(found, &PyProperty_Type)) inner = Ref::steal(PyObject_GetAttrString(found, "fget"));
    if (!inner || inner.get() != function) continue;
    capture.type_lookup(type, frame.code()->co_name);
    return know_function(capture, function) == 0;
  }
  return false;
}

}  // namespace

bool enter_frame(Capture& capture, cpython::Frame& frame) {
  PyObject* function = frame.function();
  if (function && !capture.fresh_functions.count(function) && !capture.known_functions.count(function)) {
    if (torch_layer::is_trusted_function(function) || found_on_type(capture, frame, function)) {
      if (know_function(capture, function) < 0) return false;
    } else {
      break_here(capture, "unknown_function", describe(function));
      return false;
    }
  }
  PyObject** locals = frame.locals();
  for (int i = 0; i < frame.local_count(); ++i) {
    PyObject* value = locals[i];
    if (!value || !torch_layer::is_tensor(value) || torch_layer::is_stand_in(value)) continue;
    auto known = capture.stand_ins.find(value);
    if (known == capture.stand_ins.end()) {
      break_here(capture, "unsupported_tensor", "a tensor of unknown origin entered a function");
      return false;
    }
    locals[i] = Py_NewRef(known->second.get());
    Py_DECREF(value);
  }
  return true;
}

}  // namespace graphlift::capture
