// Owns: micro-ops for jumps, loops, returns and generators.
#include "cpython/hook.h"
#include "cpython/pending.h"
#include "eval/activation.h"

namespace graphlift::eval {
namespace {

Flow pop_jump_if(Activation& a, int target, bool wanted) {
  const int truth = a.semantics.truth(a.peek(1));
  if (truth < 0) return Flow::Error;
  a.pop();
  return (truth != 0) == wanted ? a.jump_to(target) : Flow::Next;
}

Flow pop_jump_if_none(Activation& a, int target, bool wanted) {
  const int none = a.semantics.is_same(a.peek(1), Py_None);
  if (none < 0) return Flow::Error;
  a.pop();
  return (none != 0) == wanted ? a.jump_to(target) : Flow::Next;
}

Flow jump_or_pop(Activation& a, int target, bool wanted) {
  const int truth = a.semantics.truth(a.peek(1));
  if (truth < 0) return Flow::Error;
  if ((truth != 0) == wanted) return a.jump_to(target);
  a.pop();
  return Flow::Next;
}

Flow for_iter(Activation& a, int target, bool keep) {
  Ref value = a.semantics.next(a.peek(1));
  if (value) return a.push_result(std::move(value));
  if (PyErr_Occurred()) return Flow::Error;
  if (!keep) a.pop();
  return a.jump_to(target);
}

Flow send(Activation& a, int target, bool drop) {
  Ref result;
  const int more = a.semantics.send(a.peek(2), a.peek(1), &result);
  if (more < 0) return Flow::Error;
  if (more || !drop) {
    a.set(1, std::move(result));
  } else {
    a.replace(2, std::move(result));
  }
  return more ? Flow::Next : a.jump_to(target);
}

}  // namespace

Flow do_Poll(Activation& a, int wanted) {
  if (!wanted) return Flow::Next;
  if (cpython::poll() < 0) return Flow::Error;
  a.observed = cpython::thread_observed();
  return Flow::Next;
}

Flow do_Jump(Activation& a, int target) { return a.jump_to(target); }
Flow do_PopJumpIfTrue(Activation& a, int target) { return pop_jump_if(a, target, true); }
Flow do_PopJumpIfFalse(Activation& a, int target) { return pop_jump_if(a, target, false); }
Flow do_PopJumpIfNone(Activation& a, int target) { return pop_jump_if_none(a, target, true); }
Flow do_PopJumpIfNotNone(Activation& a, int target) { return pop_jump_if_none(a, target, false); }
Flow do_JumpIfTrueOrPop(Activation& a, int target) { return jump_or_pop(a, target, true); }
Flow do_JumpIfFalseOrPop(Activation& a, int target) { return jump_or_pop(a, target, false); }
Flow do_GetIter(Activation& a, int) { return a.replace(1, a.semantics.iterate(a.peek(1))); }
Flow do_ForIter(Activation& a, int target) { return for_iter(a, target, false); }
Flow do_ForIterKeep(Activation& a, int target) { return for_iter(a, target, true); }

Flow do_Return(Activation& a, int) {
  a.result = a.pop();
  return Flow::Return;
}

Flow do_GetYieldFromIter(Activation& a, int) {
  PyObject* iterable = a.peek(1);
  if (PyGen_CheckExact(iterable)) return Flow::Next;
  if (!PyCoro_CheckExact(iterable)) return a.replace(1, a.semantics.iterate(iterable));
  if (a.code->co_flags & (CO_COROUTINE | CO_ITERABLE_COROUTINE)) return Flow::Next;
  PyErr_SetString(PyExc_TypeError, "cannot 'yield from' a coroutine object in a non-coroutine generator");
  return Flow::Error;
}

Flow do_Send(Activation& a, int target) { return send(a, target, false); }
Flow do_SendDrop(Activation& a, int target) { return send(a, target, true); }
Flow do_LeaveToDefault(Activation&, int) { return Flow::Leave; }

Flow do_Yield(Activation& a, int) {
  a.result = Ref::borrow(a.peek(1));
  return Flow::Leave;
}

}  // namespace graphlift::eval
