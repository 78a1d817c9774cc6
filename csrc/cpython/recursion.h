// Owns: the limits on depth: Python's recursion limit, and the C stack, of which a frame evaluated here takes much more
// than one in CPython's own evaluator. Must not: know frames.
#pragma once

#include <Python.h>

namespace graphlift::cpython {

// One level of Python calls. Not ok(): RecursionError is pending and the level was not entered.
class RecursionGuard {
 public:
  RecursionGuard();
  ~RecursionGuard();
  RecursionGuard(const RecursionGuard&) = delete;
  RecursionGuard& operator=(const RecursionGuard&) = delete;
  bool ok() const { return thread_ != nullptr; }

 private:
  PyThreadState* thread_;
};

}  // namespace graphlift::cpython
