// Owns: calls while capturing: which callables are entered, run, handled by a rule or refused.
// Must not: run anything unknown. The table of known C callables is in callables.h.
#pragma once

#include "capture/capture.h"

namespace graphlift::capture {

// As PyObject_Vectorcall.
Ref call(Capture& capture, PyObject* callable, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames);
Ref call_ex(Capture& capture, PyObject* callable, PyObject* args_tuple, PyObject* kwargs_or_null);
// Positional calls of a callable that was reached by a guarded path.
Ref call_known(Capture& capture, PyObject* callable, PyObject* a);
Ref call_known(Capture& capture, PyObject* callable, PyObject* a, PyObject* b);
// __get__ of a descriptor found on a type; `object` null: read off the class.
Ref call_descriptor_get(Capture& capture, PyObject* descriptor, PyObject* object, PyTypeObject* type, PyObject* name);
// Checks a frame that is about to be evaluated while capturing: its function must be known, its tensors stand-ins.
// False: a break is pending and an exception is set.
bool enter_frame(Capture& capture, cpython::Frame& frame);
std::string describe(PyObject* callable);  // "builtins.open", "numpy.dot", as break messages name it

}  // namespace graphlift::capture
