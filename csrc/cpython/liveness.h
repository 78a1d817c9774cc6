// Owns: which locals a frame may still read from a unit on. Must not: execute anything.
#pragma once

#include <Python.h>

#include <vector>

namespace graphlift::cpython {

// One flag per localsplus slot.
using LiveSet = std::vector<bool>;

// Slots that may be read when running goes on at `unit`, by any path, handlers included. A slot that holds a cell or a
// free variable counts as live when anything from there on uses the variable or hands the cell on. `locals()` and other
// introspection are not seen.
LiveSet live_at(PyCodeObject* code, int unit);
// The code names a function that shows local variables: all of them matter.
bool looks_at_locals(PyCodeObject* code);

}  // namespace graphlift::cpython
