// Owns: running known C callables with arguments that C code may see; classes; callable objects of known C types.
// Must not: enter Python functions (calls.cpp).
#pragma once

#include "capture/callables.h"
#include "capture/recipe_parts.h"

namespace graphlift::capture {

Ref call_type(Capture& capture, const CallArgs& call);
Ref call_tensor_function(Capture& capture, const CallArgs& call);
// functools.partial, lru_cache wrappers, itemgetter...: false when the object is none of these.
bool call_known_object(Capture& capture, const CallArgs& call, Ref* result);
PyTypeObject* solid_base(PyTypeObject* type);  // the nearest base that is a C type
// C types whose instances may run any method while they are fresh: iterators, generators, exceptions, deques...
bool is_known_fresh_type(PyTypeObject* type);
// False: the callable stores the argument and never looks into it.
bool reads_argument(const CallArgs& call, Py_ssize_t index);
PyObject* method_wrapper_self(PyObject* wrapper);  // borrowed
// Whether a descriptor is the one that a bound C method was made from.
bool c_descriptor_matches(PyObject* descriptor, PyObject* bound);

}  // namespace graphlift::capture
