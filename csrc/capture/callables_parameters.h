// Owns: nn.Parameter and nn.Buffer that the program makes: leaves of the region, which finish.cpp hands out.
// Must not: make a tensor of any other class.
#pragma once

#include "capture/callables.h"

namespace graphlift::capture {

Ref parameter_call(Capture& capture, const CallArgs& call);
Ref buffer_call(Capture& capture, const CallArgs& call);

}  // namespace graphlift::capture
