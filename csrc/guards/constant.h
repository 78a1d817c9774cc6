// Owns: values that are guarded by content: which they are, when two are the same, and words for any object.
// Must not: run Python code, whatever the object.
#pragma once

#include <cstddef>
#include <string>

#include "base/ref.h"

namespace graphlift::guards {

// None, Ellipsis, NotImplemented; exact bool, int, float, complex, str, bytes; exact tuples of those.
bool is_guardable_constant(PyObject* object);
// Same exact type and same value; floats by their bits (nan equals the same nan, -0.0 differs from 0.0). False when
// either is no guardable constant, unless both are one object.
bool constants_equal(PyObject* a, PyObject* b);
// Equal for equal constants; by address for other objects.
size_t constant_hash(PyObject* object);
// Constants as Python writes them (shortened), other objects by kind, name and type: "function f", "class a.B", "<Foo
// object>".
std::string describe(PyObject* object);
// Its repr(), shortened.
std::string repr_text(PyObject* object);

}  // namespace graphlift::guards
