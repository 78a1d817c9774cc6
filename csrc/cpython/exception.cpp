// Owns: what exception.h says.
#include "cpython/internal.h"

#include "cpython/exception.h"

namespace graphlift::cpython {

Ref take_exception() {
#if PY_VERSION_HEX >= 0x030c0000
  return Ref::steal(PyErr_GetRaisedException());
#else
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  if (!type) return Ref();
  PyErr_NormalizeException(&type, &value, &traceback);
  PyException_SetTraceback(value, traceback ? traceback : Py_None);
  Py_DECREF(type);
  Py_XDECREF(traceback);
  return Ref::steal(value);
#endif
}

void restore_exception(Ref exception) {
#if PY_VERSION_HEX >= 0x030c0000
  PyErr_SetRaisedException(exception.release());
#else
  PyObject* type = Py_NewRef(reinterpret_cast<PyObject*>(Py_TYPE(exception.get())));
  PyObject* traceback = PyException_GetTraceback(exception.get());
  PyErr_Restore(type, exception.release(), traceback);
#endif
}

PyObject* handled_exception() {
  PyObject* value = PyThreadState_Get()->exc_info->exc_value;
  return value ? value : Py_None;
}

void set_handled_exception(PyObject* exception) {
  PyObject*& slot = PyThreadState_Get()->exc_info->exc_value;
  if (exception == Py_None) Py_CLEAR(exception);  // 3.13 looks further out only where there is null
  Py_XSETREF(slot, exception);
}

void add_traceback(Frame frame) {
  if (_PyFrame_IsIncomplete(frame.raw())) return;
  PyFrameObject* object = PyEval_GetFrame();  // makes the object of the current frame when there is none yet
  if (object && object->f_frame == frame.raw()) PyTraceBack_Here(object);
}

}  // namespace graphlift::cpython
