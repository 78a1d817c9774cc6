// Owns: what calls that show something to people have in common; they are put off and replayed behind the region.
#pragma once

#include "capture/callables.h"

namespace graphlift::capture {

// Guarded by value or identity: its text is that of now.
bool is_fixed(PyObject* object);
// What the deferred call is given in place of an argument. Null with a break.
Ref shown(Capture& capture, const CallArgs& call, Py_ssize_t index);
// Replays the call behind the region; a receiver from outside may be first. A break where something else than fixed
// objects and tensors is shown.
Ref defer_call(Capture& capture, const CallArgs& call);
// What the program did so far that is seen outside of the region.
size_t acts_so_far(const Capture& capture);
// Whether an attribute decides what deferred calls show, or where: assigned in a region, it would come too early for
// those before.
bool steers_deferred_calls(Capture& capture, PyObject* object, PyObject* name);
// Whether an outside list decides it for a call that is deferred: handlers, filters.
bool steers_deferred_calls(const Capture& capture, PyObject* list);

}  // namespace graphlift::capture
