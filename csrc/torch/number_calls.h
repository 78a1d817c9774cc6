// Owns: calls of operators that take a float which the graph computes where their schema has a number. Must not: make
// such floats (numbers.cpp).
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

#include "base/ref.h"

namespace graphlift::torch_layer {

// The symbolic number that torch made a tensor of; the tensor's Python object has it. Null: of none. With the GIL.
Ref hidden_behind(const at::Tensor& tensor);

// Brings such floats among the arguments to what can be recorded: tensors where a tensor is wanted; for the operators
// that optimizers use, calls that compute the same with a tensor; anywhere else the number as it is now, which the
// recording then relies on. True: the call is done and its result is on the stack.
bool call_with_numbers(const c10::OperatorHandle& handle, torch::jit::Stack& stack);

}  // namespace graphlift::torch_layer
