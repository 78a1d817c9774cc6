// Owns: what a micro-op's handler works on: one frame being evaluated, its stack, and how control goes on.
// Must not: loop over instructions (evaluator.cpp).
#pragma once

#include "base/ref.h"
#include "cpython/decode.h"
#include "cpython/frame.h"
#include "eval/semantics.h"

namespace graphlift::eval {

// How control goes on behind a micro-op.
enum class Flow : uint8_t {
  Next,     // the next micro-op
  Jump,     // to Activation::jump
  Error,    // a Python exception is pending; it gets a traceback entry for this instruction
  Reraise,  // as Error, without an entry. The stack is as before the instruction
  Return,   // with Activation::result
  Leave,    // only the default evaluator executes this instruction. The stack is as before it
};

class Activation {
 public:
  Activation(cpython::Frame frame, Semantics& semantics)
      : frame(frame),
        semantics(semantics),
        decoded(cpython::decode(frame.code())),
        code(frame.code()),
        slots(frame.locals()),
        top_(frame.top()) {}

  cpython::Frame frame;
  Semantics& semantics;
  const cpython::Decoded& decoded;
  PyCodeObject* code;
  PyObject** slots;              // locals, then the stack
  int jump = -1;                 // target unit, for Flow::Jump
  Ref result;                    // for Flow::Return
  PyObject* kw_names = nullptr;  // borrowed; set by KwNames for the Call of the same instruction
  bool observed = false;         // a trace function was set meanwhile: CPython is to go on with this frame

  // The stack. Its slots own their values; null is a value too. peek(1) is the topmost.
  void push(Ref value) { slots[top_++] = value.release(); }
  Ref pop() { return Ref::steal(slots[--top_]); }
  PyObject* peek(int n) const { return slots[top_ - n]; }
  PyObject** from_top(int n) const { return slots + top_ - n; }
  void drop(int n) {
    while (n-- > 0) pop();
  }
  // The old value is released after the slot has the new one, since releasing may run code that sees the frame.
  void set(int n, Ref value) { Ref::steal(std::exchange(slots[top_ - n], value.release())); }

  // The result of an operator that takes `n` operands from the stack: null means an error.
  Flow replace(int n, Ref value) {
    if (!value) return Flow::Error;
    drop(n - 1);
    set(1, std::move(value));
    return Flow::Next;
  }
  Flow push_result(Ref value) {
    if (!value) return Flow::Error;
    push(std::move(value));
    return Flow::Next;
  }
  // The end of an operator that takes `n` operands and gives none: negative means an error.
  Flow consume(int n, int status) {
    if (status < 0) return Flow::Error;
    drop(n);
    return Flow::Next;
  }
  Flow jump_to(int unit) {
    jump = unit;
    return Flow::Jump;
  }

  PyObject* constant(int i) const { return PyTuple_GET_ITEM(code->co_consts, i); }
  PyObject* name(int i) const { return PyTuple_GET_ITEM(code->co_names, i); }

 private:
  int& top_;
};

inline Ref boolean(int value) { return Ref::borrow(value ? Py_True : Py_False); }

#define MICRO(name, effect, jump_effect) Flow do_##name(Activation& a, int arg);
#include "cpython/micro_ops.def"
#undef MICRO

}  // namespace graphlift::eval
