// Owns: the Python type of compiled callables: calls, binding as a method, attributes, garbage collection.
// Must not: know regions beyond calling run.h.
#pragma once

#include <memory>

#include "base/ref.h"
#include "engine/region.h"

namespace graphlift::engine {

// The type object; made once. Null with a Python error set.
PyTypeObject* compiled_function_type();
// A compiled form of a Python function.
Ref make_compiled_function(PyObject* function, Config config);
// Seconds of one guard check of a call with these arguments, fetches included: the least of `batches` means of `count`.
// Negative: no region stands for the call, or it is no compiled function.
double guard_seconds(PyObject* compiled, PyObject* const* args, size_t nargs, int batches, int count);

}  // namespace graphlift::engine
