// Owns: the order in which a set is read. It depends on the set's history, and where keys are hashed by address, on
// which objects they are.
// Must not: guard what is in the set (shadows.cpp does).
#pragma once

#include "capture/capture.h"

namespace graphlift::capture {

// The order of a set, as C code may see it, decides. False after a break. Any other object is let through.
bool order_is_read(Capture& capture, PyObject* set);
// Another set is made of it, or it is changed: the order goes into that of the result.
bool order_goes_on(Capture& capture, PyObject* set);
bool guard_order(Capture& capture, Outside* outside);
// Whether a set that the region makes gets the very table that it has now. New objects have other addresses in the next
// call anyway.
bool has_fixed_keys(PyObject* set);

}  // namespace graphlift::capture
