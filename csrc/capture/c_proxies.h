// Owns: what C code gets in place of a callable that it will call, and of an iterable whose elements it will look into:
// objects that lead back into the capture, so that the call has its rule and the element its guards.
// Must not: reach the program (snapshot_builder.cpp refuses them), or work outside of a capture.
#pragma once

#include "capture/c_reads.h"

namespace graphlift::capture {

// Called by C code: a call as the evaluator makes it. Fresh Python functions come back as they are: their frames come
// to the hook, unless C code looks at what they return.
Ref call_proxy(Capture& capture, PyObject* callable, Look look = Look::Nothing);

// Called by the autograd engine: what it does besides its result is a break where a backward behind the region would do
// it again.
Ref hook_proxy(PyObject* hook);

// An iterator over the same elements, each as C code may look into it. `moves`: the elements are handed on as well, so
// that containers from outside must stay themselves: they break. `look`: what C code finds out of each. Null: error or
// break.
Ref element_proxy(Capture& capture, PyObject* iterable, bool moves, Look look);

bool is_proxy(PyObject* object);

// An iterator of a C type that existed before the capture: taking from it would use it up.
bool is_outside_iterator(Capture& capture, PyObject* object);

}  // namespace graphlift::capture
