// Owns: calls of operators that take a float which the graph computes where their schema has a number. Must not: make
// such floats (numbers.cpp).
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

namespace graphlift::torch_layer {

class Recorder;

// Brings such floats among the arguments to what can be recorded: tensors where a tensor is wanted; for the operators
// that optimizers use, calls that compute the same with a tensor; anywhere else the number as it is now, which the
// recording then relies on. True: the call is done and its result is on the stack.
bool call_with_numbers(Recorder& recorder, const c10::OperatorHandle& handle, torch::jit::Stack& stack);

}  // namespace graphlift::torch_layer
