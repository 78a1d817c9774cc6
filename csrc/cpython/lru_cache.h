// Owns: functools.lru_cache's storage: reading it without a call, and a call that takes a given answer in place of the
// function's. Must not: run Python code.
#pragma once

#include "base/ref.h"

namespace graphlift::cpython {

// The dict of a cache, borrowed; null: none, or one whose keys hold types (typed=True).
PyObject* lru_cache_dict(PyObject* wrapper);
// The key under which the dict holds the answer to a call. New reference.
Ref lru_cache_key(PyObject* wrapper, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames);
// A bounded cache's dict holds links; the answer in one, borrowed. Null: this is no link but the answer itself.
PyObject* lru_link_result(PyObject* link);
// A builtin function, called with (cache, answer, names of keywords or None, fillings or None, *arguments): the cache
// counts a call and keeps the answer as if its function had given it. Fillings are tuples of such arguments: calls of
// caches that the function makes where it is called at all. Borrowed.
PyObject* lru_cache_filler();

}  // namespace graphlift::cpython
