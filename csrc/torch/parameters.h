// Owns: nn.Parameter made while capturing. No torch header is needed to include it.
// Must not: know which call asks for one.
#pragma once

#include "base/ref.h"

namespace graphlift::torch_layer {

// nn.Parameter(data, requires_grad) of a stand-in of a plain class, as another one. Null with a Python error.
// `type`: nn.Parameter.
Ref as_parameter(PyObject* type, PyObject* stand_in, bool requires_grad);

}  // namespace graphlift::torch_layer
