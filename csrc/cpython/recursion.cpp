// Owns: what recursion.h says.
#include "cpython/internal.h"

#include "cpython/recursion.h"

#include <pthread.h>

#include <algorithm>
#include <cstdint>

namespace graphlift::cpython {
namespace {

int& remaining(PyThreadState* thread) {
#if PY_VERSION_HEX >= 0x030c0000
  return thread->py_recursion_remaining;
#else
  return thread->recursion_remaining;
#endif
}

// The lowest address that a frame may still start at on this thread: torch's kernels and CPython need room below.
uintptr_t stack_floor() {
  pthread_attr_t attributes;
  if (pthread_getattr_np(pthread_self(), &attributes) != 0) return 0;
  void* low = nullptr;
  size_t size = 0;
  pthread_attr_getstack(&attributes, &low, &size);
  pthread_attr_destroy(&attributes);
  return reinterpret_cast<uintptr_t>(low) + std::min<size_t>(size / 4, 512 * 1024);
}

bool stack_is_low() {
  static thread_local const uintptr_t floor = stack_floor();
  return reinterpret_cast<uintptr_t>(__builtin_frame_address(0)) < floor;
}

}  // namespace

RecursionGuard::RecursionGuard() : thread_(PyThreadState_Get()) {
  // While CPython makes the RecursionError itself, it allows itself some headroom.
  const bool too_deep = remaining(thread_) <= 0 && !thread_->recursion_headroom;
  if (too_deep || stack_is_low()) {
    thread_ = nullptr;
    PyErr_SetString(PyExc_RecursionError, "maximum recursion depth exceeded");
    return;
  }
  --remaining(thread_);
}

RecursionGuard::~RecursionGuard() {
  if (thread_) ++remaining(thread_);
}

}  // namespace graphlift::cpython
