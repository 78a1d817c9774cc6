// Owns: reading functools.lru_cache's storage without calling it. Must not: change it, or run Python code.
#pragma once

#include "base/ref.h"

namespace graphlift::cpython {

// The dict of a cache, borrowed; null: none, or one whose keys hold types (typed=True).
PyObject* lru_cache_dict(PyObject* wrapper);
// The key under which the dict holds the answer to a call. New reference.
Ref lru_cache_key(PyObject* wrapper, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames);
// A bounded cache's dict holds links; the answer in one, borrowed. Null: this is no link but the answer itself.
PyObject* lru_link_result(PyObject* link);

}  // namespace graphlift::cpython
