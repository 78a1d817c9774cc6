// Owns: the table of a set or frozenset: its slots decide the order of iteration, and what further changes do to it.
// Must not: run Python code.
#pragma once

#include "base/ref.h"

namespace graphlift::cpython {

// Whether two sets have the same number of slots, used in the same way, and `same(key, key)` in each with a key: they
// are iterated in the same order, also after the same changes.
bool same_table(PyObject* a, PyObject* b, bool (*same)(PyObject*, PyObject*));
// A set (or frozenset) of the same keys in the same table.
Ref copy_of_set(PyObject* set, bool frozen = false);
// Afterwards each has the other's table.
void swap_sets(PyObject* a, PyObject* b);

}  // namespace graphlift::cpython
