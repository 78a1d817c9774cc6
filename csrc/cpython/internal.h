// Owns: the one way to include CPython's internal headers from C++. Included first, and only by cpython/*.cpp.
#pragma once

#define Py_BUILD_CORE 1
#include <Python.h>
// CPython's headers use C's atomics when this is set, which C++ lacks; the layout is the same without.
#undef HAVE_STD_ATOMIC
#include <internal/pycore_code.h>
#include <internal/pycore_frame.h>
#include <internal/pycore_interp.h>

#if PY_VERSION_HEX < 0x030b0000 || PY_VERSION_HEX >= 0x030e0000
#error "frames of this CPython are not known here (3.11 to 3.13 are)"
#endif
#ifdef Py_GIL_DISABLED
#error "this layer relies on the GIL"
#endif

namespace graphlift::cpython {

#if PY_VERSION_HEX >= 0x030d0000
inline _PyInterpreterFrame*& current_frame(PyThreadState* thread) { return thread->current_frame; }
#else
inline _PyInterpreterFrame*& current_frame(PyThreadState* thread) { return thread->cframe->current_frame; }
#endif

}  // namespace graphlift::cpython
