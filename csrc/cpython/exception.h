// Owns: the pending exception, the handled one (sys.exc_info) and traceback entries, alike in all versions.
// Must not: decide which handler runs.
#pragma once

#include "base/ref.h"
#include "cpython/frame.h"

namespace graphlift::cpython {

// Takes the pending exception as one instance that carries its traceback; null when none is pending.
Ref take_exception();
// Makes it pending again, its own traceback included.
void restore_exception(Ref exception);
// The exception that the running frame's generator or thread is handling; borrowed, None when there is none.
PyObject* handled_exception();
// Replaces it (None: by none); takes over the reference.
void set_handled_exception(PyObject* exception);
// Adds the current frame (LinkFrame) at its executing instruction to the pending exception's traceback.
void add_traceback(Frame frame);

}  // namespace graphlift::cpython
