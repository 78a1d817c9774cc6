// Owns: functions that CPython exports but declares in internal headers only, and small differences between versions.
#pragma once

#include "base/ref.h"

namespace graphlift::cpython {

// The attribute looked up as for a method call: true when `*method` is an unbound function that takes `object` first,
// false when it is an ordinary attribute. `*method` is null with an exception set on failure.
bool get_method(PyObject* object, PyObject* name, Ref* method);
// Looked up on the type, bound to the object; null without an exception when there is none.
Ref lookup_special(PyObject* object, PyObject* name);
// Null without an exception when there is none.
Ref optional_attribute(PyObject* object, PyObject* name);
// dict.update(mapping), but a key that is there already raises KeyError(key).
int merge_distinct(PyObject* dict, PyObject* mapping);
// "f()" or "module.f()", for messages; null with an exception on failure.
Ref function_text(PyObject* callable);
Ref join(PyObject* const* strings, Py_ssize_t count);
// Whether the module behind a __spec__ is being imported at the moment.
bool is_initializing(PyObject* spec);

}  // namespace graphlift::cpython
