// Owns: change counters that CPython keeps: version tags of dicts (3.11, 3.12) and of types.
// Must not: change an object, or promise a counter where the interpreter has none.
#pragma once

#include <Python.h>

#include <cstdint>

namespace graphlift::cpython {

// Where a dict keeps its version tag: no two states of any dicts of the process share a value. Null where the
// interpreter has no tags (3.13 and later): contents must then be read again.
const uint64_t* dict_version_address(PyObject* dict);

// Where a type keeps its version tag: changes whenever an attribute of the type or of a base may have changed; 0 is no
// tag. Two types never share a tag, a later state of a type never gets an earlier tag.
const unsigned* type_version_address(PyTypeObject* type);
// The tag, or 0 when the type has none now. Looking an attribute up (_PyType_Lookup) gives a type one.
unsigned type_version(PyTypeObject* type);

}  // namespace graphlift::cpython
