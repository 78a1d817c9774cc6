// Owns: what CPython's evaluator does between instructions now and then: signals, other threads' turn, pending calls.
#pragma once

namespace graphlift::cpython {

// 0, or -1 with a Python exception (KeyboardInterrupt, an exception sent to the thread). Cheap when nothing is pending.
int poll();

}  // namespace graphlift::cpython
