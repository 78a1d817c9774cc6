// Owns: version-dependent access to instances. Must not: run Python code.
#pragma once

#include "base/ref.h"

namespace graphlift::cpython {

// The instance dict, made from inline values when needed. Borrowed; null (no error) when the object has none.
PyObject* instance_dict(PyObject* object);
// The dict of a type's own attributes. Borrowed.
PyObject* type_dict(PyTypeObject* type);

}  // namespace graphlift::cpython
