// Owns: access to CPython's interpreter frames: locals, value stack, position, and the ways to leave a frame.
// The only layer (cpython/) that knows _PyInterpreterFrame and PY_VERSION_HEX. Must not: interpret bytecode.
#pragma once

#include "base/ref.h"

struct _PyInterpreterFrame;

namespace graphlift::cpython {

// A view of one live interpreter frame. Does not own it. Units are code units (two bytes), as in co_code.
class Frame {
 public:
  explicit Frame(_PyInterpreterFrame* raw) : raw_(raw) {}

  _PyInterpreterFrame* raw() const { return raw_; }
  PyCodeObject* code() const;
  PyObject* function() const;        // borrowed; null for frames without one
  PyObject* globals() const;         // borrowed dict
  PyObject* builtins() const;        // borrowed mapping
  PyObject* locals_mapping() const;  // borrowed; null in optimized functions
  int local_count() const;           // nlocalsplus: arguments, locals, cells, free variables
  PyObject** locals() const;         // local_count() slots, owned references or null
  PyObject** stack() const;          // first stack slot
  int& top() const;                  // index into locals() behind the topmost value of the stack
  int depth() const;                 // values on the stack
  void set_depth(int depth);         // does not change references
  int position() const;              // unit of the next instruction to execute
  void set_position(int unit);       // the next instruction to execute
  void set_executing(int unit);      // `unit` is being executed: tracebacks and f_lineno show it
  int executing() const;             // as set by set_executing
  bool is_generator() const;         // the frame lives in a generator, coroutine or async generator
  int line_of(int unit) const;

 private:
  _PyInterpreterFrame* raw_;
};

// While alive, sys._getframe, tracebacks and super() see the frame as the current one.
class LinkFrame {
 public:
  explicit LinkFrame(Frame frame);
  ~LinkFrame();
  LinkFrame(const LinkFrame&) = delete;
  LinkFrame& operator=(const LinkFrame&) = delete;

 private:
  void* state_[3];
};

// While alive, a frame that executes a call is the current one again, as if what it called had been left.
class RelinkFrame {
 public:
  explicit RelinkFrame(Frame frame);
  ~RelinkFrame();
  RelinkFrame(const RelinkFrame&) = delete;
  RelinkFrame& operator=(const RelinkFrame&) = delete;

 private:
  void* state_[4];
};

// The ways to leave a frame. Each consumes it as the evaluator function does, through CPython's (or the chained)
// evaluator, and returns what that returns. Every frame handed to a FrameHandler (hook.h) ends in exactly one of them.

// Gives the frame the free variables of its function that it does not have yet, as its first instruction does. Only for
// frames that won't execute that one.
void fill_free_variables(Frame frame);

// Goes on in the default (or chained) evaluator from the frame's locals, stack and position. `raising`: the pending
// exception was raised by the instruction set with set_executing(); the frame's handlers get it, or it leaves with a
// traceback entry.
PyObject* leave_to_default(Frame frame, bool raising);
// Leaves through a return instruction at `unit` (RETURN_VALUE, RETURN_CONST, YIELD_VALUE) with `value`. Steals value.
PyObject* leave_by_return(Frame frame, PyObject* value, int unit);
// Leaves with the pending exception and runs no handler of the frame. Its stack is dropped.
PyObject* leave_unwinding(Frame frame);

}  // namespace graphlift::cpython
