// Owns: Python exceptions that several families raise, worded as CPython words them, and look-ups that tell "missing"
// from "failed". Must not: know frames.
#pragma once

#include "base/ref.h"

namespace graphlift::eval {

class Activation;
enum class Flow : uint8_t;

// NameError with its `name` set, for suggestions. The format has one %U.
void name_error(const char* format, PyObject* name);
// The exception for an empty cell in a slot of localsplus.
Flow unbound_cell(const Activation& a, int slot);
// mapping[key]; null without an exception when the key is missing.
Ref mapping_get(PyObject* mapping, PyObject* key);
// A TypeError is pending because an object is not iterable: true, and the exception is gone.
bool clear_not_iterable(PyObject* object);
PyObject* interned(const char* text);  // borrowed from a table that keeps it

}  // namespace graphlift::eval
