// Owns: binding call arguments to a function's local slots, as CPython does when it makes a frame.
// Must not: raise: a call that doesn't fit goes to CPython, which words the error.
#pragma once

#include "base/ref.h"

namespace graphlift::engine {

// Fills `locals` (nlocalsplus slots, null before) with new references. False without an error: the call doesn't fit.
bool bind_arguments(PyFunctionObject* function, PyObject* const* args, size_t nargsf, PyObject* kwnames,
                    PyObject** locals);

}  // namespace graphlift::engine
