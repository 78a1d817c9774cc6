// Owns: the PEP 523 hook: who evaluates new frames of a thread. Must not: evaluate.
#pragma once

#include "cpython/frame.h"

namespace graphlift::cpython {

class FrameHandler {
 public:
  virtual ~FrameHandler() = default;
  // A new or resumed frame of this thread. To take it: evaluate, finish through one of the leave_* functions and return
  // what that returned. To decline: leave the frame untouched and set *handled to false (it is true before).
  // Must not throw: CPython's C code calls it.
  // `throwing`: an exception is pending, raised by the instruction before position() (generator.throw()).
  virtual PyObject* evaluate(Frame frame, bool throwing, bool* handled) = 0;
};

// While alive, new frames of this thread go to `handler` (null: to the default evaluator). Nests; ends in reverse
// order, on the same thread. The hook is in the interpreter while any scope with a handler lives in any thread; an
// evaluator that was there before is chained: it gets what no handler takes, and every frame that is left by
// leave_to_default. Frames go to the default evaluator while the thread has a trace or profile function, a monitoring
// tool is active, the garbage collector runs, or an audit hook does.
class HookScope {
 public:
  explicit HookScope(FrameHandler* handler);
  ~HookScope();
  HookScope(const HookScope&) = delete;
  HookScope& operator=(const HookScope&) = delete;

 private:
  FrameHandler* before_;
  bool counted_;
};

FrameHandler* current_handler();
bool hook_installed();
// A trace or profile function is set on this thread, or a monitoring tool in the interpreter.
bool thread_observed();
// The evaluator under the hook: the chained one, or CPython's.
PyObject* default_evaluate(Frame frame, bool throwing);

}  // namespace graphlift::cpython
