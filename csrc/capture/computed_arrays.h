// Owns: numpy's arrays that are computed while capturing: the tensors that stand for them, and which operators,
// functions and methods are followed (graphlift.arrays). What is not followed is a break. Must not: load numpy, or hand
// an array that has no data to C code.
#pragma once

#include <initializer_list>

#include "capture/callables.h"

namespace graphlift::capture {

// The tensor that stands for an array that was computed here; null: another array. Borrowed.
PyObject* computed_array(const Capture& capture, PyObject* array);
// The array on a tensor's memory, as tensor.numpy() gives it. Null without an error: none that is followed.
Ref array_on(Capture& capture, PyObject* tensor);
// The tensor on the memory of an array, from outside or computed. Null without a break: there is none.
Ref tensor_on(Capture& capture, PyObject* array);
// The same as torch.from_numpy gives it: another object each time.
Ref new_tensor_on(Capture& capture, PyObject* array);

// An operator, by its name in Python's `operator`.
Ref array_operator(Capture& capture, const char* name, std::initializer_list<PyObject*> operands);
// Attributes of computed arrays, and methods of all that are followed. False: neither.
bool computed_array_attr(Capture& capture, PyObject* array, PyObject* name, Ref* result);
// Functions of numpy with arrays among their arguments, and methods of arrays. False: it is none of these.
bool call_on_arrays(Capture& capture, const CallArgs& call, Ref* result);

}  // namespace graphlift::capture
