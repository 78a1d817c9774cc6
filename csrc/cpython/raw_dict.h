// Owns: reading dicts, sets and instance dicts by their storage, without running any Python code: no __eq__, __hash__,
// __missing__, __getitem__. Must not: change what it reads (but an instance dict is made from inline values when asked
// for).
#pragma once

#include <Python.h>

#include <cstdint>

namespace graphlift::cpython {

enum class Answer : uint8_t { No, Yes, Unknown };

// a == b for objects whose comparison is C code of builtin types (numbers, str, bytes, None, tuples of those) or
// identity. Unknown: only the __eq__ of one of them could tell.
Answer raw_equal(PyObject* a, PyObject* b);

// Looks `key` (with its hash) up in a dict or an instance of a derived class. Yes: *value is borrowed. Unknown: an
// entry of the same hash is in the way that cannot be compared without running Python.
Answer raw_dict_lookup(PyObject* dict, PyObject* key, Py_hash_t hash, PyObject** value);

// One element of a set or frozenset, in storage order. False at the end.
bool raw_set_next(PyObject* set, Py_ssize_t* position, PyObject** element, Py_hash_t* hash);

// Where an object keeps its instance dict; the content is made from inline values first. Null: it keeps none.
PyObject** instance_dict_address(PyObject* object);

// The object that a weakref points at, borrowed; null when it is gone.
PyObject* weakref_target(PyObject* weakref);

}  // namespace graphlift::cpython
