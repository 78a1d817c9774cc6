// Owns: micro-ops on locals, cells and the stack itself.
#include "cpython/version.h"
#include "eval/activation.h"
#include "eval/errors.h"

namespace graphlift::eval {
namespace {

PyObject* slot_name(const Activation& a, int slot) { return PyTuple_GET_ITEM(a.code->co_localsplusnames, slot); }

Flow unbound_local(const Activation& a, int slot) {
  PyErr_Format(PyExc_UnboundLocalError, "cannot access local variable '%U' where it is not associated with a value",
               slot_name(a, slot));
  return Flow::Error;
}

void assign(Activation& a, int slot, Ref value) { Ref::steal(std::exchange(a.slots[slot], value.release())); }

}  // namespace

Flow unbound_cell(const Activation& a, int slot) {
  if (slot < a.code->co_nlocalsplus - a.code->co_nfreevars) return unbound_local(a, slot);
  name_error("cannot access free variable '%U' where it is not associated with a value in enclosing scope",
             slot_name(a, slot));
  return Flow::Error;
}

Flow do_Nop(Activation&, int) { return Flow::Next; }

Flow do_Pop(Activation& a, int) {
  a.pop();
  return Flow::Next;
}

Flow do_PushNull(Activation& a, int) {
  a.push(Ref());
  return Flow::Next;
}

Flow do_PushNullIf(Activation& a, int wanted) {
  if (wanted) a.push(Ref());
  return Flow::Next;
}

Flow do_Copy(Activation& a, int n) {
  a.push(Ref::borrow(a.peek(n)));
  return Flow::Next;
}

Flow do_Swap(Activation& a, int n) {
  std::swap(*a.from_top(1), *a.from_top(n));
  return Flow::Next;
}

Flow do_LoadConst(Activation& a, int i) {
  a.push(Ref::borrow(a.constant(i)));
  return Flow::Next;
}

Flow do_LoadSmallInt(Activation& a, int value) { return a.push_result(Ref::steal(PyLong_FromLong(value))); }

Flow do_CommonConstant(Activation& a, int i) {
  PyObject* const fixed[] = {PyExc_AssertionError, PyExc_NotImplementedError,
                             reinterpret_cast<PyObject*>(&PyTuple_Type)};
  static const char* const builtins[] = {"all", "any"};
  if (i < 3) return a.push_result(Ref::borrow(fixed[i]));
  return a.push_result(Ref::borrow(PyDict_GetItemString(PyEval_GetBuiltins(), builtins[i - 3])));
}

Flow do_LoadFast(Activation& a, int slot) {
  PyObject* value = a.slots[slot];
  if (!value) return unbound_local(a, slot);
  a.push(Ref::borrow(value));
  return Flow::Next;
}

Flow do_LoadFastAndClear(Activation& a, int slot) {
  a.push(Ref::steal(std::exchange(a.slots[slot], nullptr)));
  return Flow::Next;
}

Flow do_StoreFast(Activation& a, int slot) {
  assign(a, slot, a.pop());
  return Flow::Next;
}

Flow do_DeleteFast(Activation& a, int slot) {
  if (!a.slots[slot]) return unbound_local(a, slot);
  assign(a, slot, Ref());
  return Flow::Next;
}

Flow do_MakeCell(Activation& a, int slot) {
  Ref cell = Ref::steal(PyCell_New(a.slots[slot]));
  if (!cell) return Flow::Error;
  assign(a, slot, std::move(cell));
  return Flow::Next;
}

Flow do_CopyFreeVars(Activation& a, int count) {
  PyObject* closure = PyFunction_GET_CLOSURE(a.frame.function());
  const int first = a.code->co_nlocalsplus - count;
  for (int i = 0; i < count; ++i) assign(a, first + i, Ref::borrow(PyTuple_GET_ITEM(closure, i)));
  return Flow::Next;
}

Flow do_LoadDeref(Activation& a, int slot) {
  Ref value = a.semantics.load_cell(a.frame, a.slots[slot]);
  if (value) return a.push_result(std::move(value));
  return PyErr_Occurred() ? Flow::Error : unbound_cell(a, slot);
}

Flow do_StoreDeref(Activation& a, int slot) {
  Ref value = a.pop();
  return a.semantics.store_cell(a.frame, a.slots[slot], value.get()) < 0 ? Flow::Error : Flow::Next;
}

Flow do_DeleteDeref(Activation& a, int slot) {
  Ref value = a.semantics.load_cell(a.frame, a.slots[slot]);
  if (!value) return PyErr_Occurred() ? Flow::Error : unbound_cell(a, slot);
  value.reset();
  return a.semantics.store_cell(a.frame, a.slots[slot], nullptr) < 0 ? Flow::Error : Flow::Next;
}

}  // namespace graphlift::eval
