// Owns: generators that wait at a yield. Must not: resume one.
#pragma once

#include "cpython/frame.h"

namespace graphlift::cpython {

// The generator in which the frame lives, borrowed; null: another frame, or a coroutine.
PyObject* generator_of(Frame frame);
// It waits at a yield.
bool is_suspended(PyObject* generator);
// A try or with statement of it would go on when it is closed or dies.
bool acts_when_closed(PyObject* generator);

}  // namespace graphlift::cpython
