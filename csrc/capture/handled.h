// Owns: what is handled outside of the region (sys.exc_info), to which a raise in it links its exception.
// Must not: say which handler runs.
#pragma once

#include "capture/capture.h"

namespace graphlift::capture {

// What sys.exc_info() tells of, past the running generator; null: nothing.
Ref handled_now();
// Guards that nothing is handled where the region begins.
void guard_nothing_handled(Capture& capture);
// Whether the context of an exception of the region is the same in each call, which is guarded. False: it is one that
// was handled outside, another in each call.
bool guard_context(Capture& capture, PyObject* exception);

// What raising it (null: the handled exception) depends on is guarded, and writes into no exception from outside. -1: a
// break.
int may_raise(Capture& capture, PyObject* exception, PyObject* cause);

}  // namespace graphlift::capture
