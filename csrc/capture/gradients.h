// Owns: .grad of tensors as the program sees it, and its own runs of the autograd engine. The gradient of an outside
// leaf is put on its stand-in, guarded, when it is first needed; from then on torch keeps it there, and what it is at
// the region's exit becomes an effect. Must not: change an outside tensor.
#pragma once

#include "capture/callables.h"

namespace graphlift::capture {

Ref get_gradient(Capture& capture, PyObject* tensor);
int set_gradient(Capture& capture, PyObject* tensor, PyObject* value);  // None: no gradient
// torch.autograd.graph._engine_run_backward, which everything that runs the engine from Python goes through.
Ref run_engine(Capture& capture, const CallArgs& call);

}  // namespace graphlift::capture
