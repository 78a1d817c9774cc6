// Owns: functorch's levels (vmap, grad, jvp) on this thread, and tensors that wrap others at a level. Torch's headers
// of them include one that torch does not install: they are asked through torch's Python functions. Must not: open
// levels.
#pragma once

#include <ATen/core/Tensor.h>

#include "base/ref.h"

namespace graphlift::torch_layer {

bool is_functorch_wrapper(const at::TensorBase& tensor);
// Such a wrapper, or one of torch's older vmap: only the dispatcher knows how to compute on it.
bool has_no_memory(const at::TensorBase& tensor);
// What the wrappers around it hold in the end; the tensor itself when it is none.
Ref innermost(PyObject* tensor);

size_t functorch_levels();
void close_functorch_levels(size_t down_to);

}  // namespace graphlift::torch_layer
