// Owns: timing of a region's run and of the same operator called directly from C++, for bench/ and the tests' bounds.
#pragma once

#include "torch/tracer.h"

namespace graphlift::torch_layer {

// Mean over `times` runs with these inputs (a list of tensors), outputs dropped at once.
double nanoseconds_per_run(const Executable& executable, PyObject* inputs, size_t outputs, int times);
// at::add on two tensors, result dropped at once. `wrapped`: with unwrapping and wrapping of Python objects.
double nanoseconds_of_add(PyObject* left, PyObject* right, int times, bool wrapped);

}  // namespace graphlift::torch_layer
