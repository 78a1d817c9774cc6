// Owns: attributes of stand-ins: what torch's C getters answer, and what has to be read from the outside tensor behind
// one. Must not: give out data.
#pragma once

#include "capture/capture.h"

namespace graphlift::capture {

Ref tensor_get_attr(Capture& capture, PyObject* tensor, PyObject* name);
int tensor_set_attr(Capture& capture, PyObject* tensor, PyObject* name, PyObject* value_or_null);
Ref tensor_length(Capture& capture, PyObject* tensor);

}  // namespace graphlift::capture
