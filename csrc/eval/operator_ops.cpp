// Owns: micro-ops for operators, comparisons, items and slices.
#include "eval/activation.h"

namespace graphlift::eval {
namespace {

Flow replace_by_bool(Activation& a, int operands, int value) {
  return value < 0 ? Flow::Error : a.replace(operands, boolean(value));
}

}  // namespace

Flow do_Unary(Activation& a, int op) { return a.replace(1, a.semantics.unary(op, a.peek(1))); }

Flow do_UnaryNot(Activation& a, int) {
  const int truth = a.semantics.truth(a.peek(1));
  return replace_by_bool(a, 1, truth < 0 ? -1 : !truth);
}

Flow do_ToBool(Activation& a, int) { return replace_by_bool(a, 1, a.semantics.truth(a.peek(1))); }
Flow do_ToBoolIf(Activation& a, int wanted) { return wanted ? do_ToBool(a, 0) : Flow::Next; }
Flow do_Binary(Activation& a, int op) { return a.replace(2, a.semantics.binary(op, a.peek(2), a.peek(1))); }
Flow do_Compare(Activation& a, int op) { return a.replace(2, a.semantics.compare(op, a.peek(2), a.peek(1))); }

Flow do_IsOp(Activation& a, int inverted) {
  const int same = a.semantics.is_same(a.peek(2), a.peek(1));
  return replace_by_bool(a, 2, same < 0 ? -1 : same ^ inverted);
}

Flow do_ContainsOp(Activation& a, int inverted) {
  const int found = a.semantics.contains(a.peek(1), a.peek(2));
  return replace_by_bool(a, 2, found < 0 ? -1 : found ^ inverted);
}

Flow do_Subscript(Activation& a, int) { return a.replace(2, a.semantics.get_item(a.peek(2), a.peek(1))); }

Flow do_StoreSubscript(Activation& a, int) {
  return a.consume(3, a.semantics.set_item(a.peek(2), a.peek(1), a.peek(3)));
}

Flow do_DeleteSubscript(Activation& a, int) {
  return a.consume(2, a.semantics.set_item(a.peek(2), a.peek(1), nullptr));
}

Flow do_BinarySlice(Activation& a, int) {
  Ref slice = Ref::steal(PySlice_New(a.peek(2), a.peek(1), nullptr));
  return slice ? a.replace(3, a.semantics.get_item(a.peek(3), slice.get())) : Flow::Error;
}

Flow do_StoreSlice(Activation& a, int) {
  Ref slice = Ref::steal(PySlice_New(a.peek(2), a.peek(1), nullptr));
  return slice ? a.consume(4, a.semantics.set_item(a.peek(3), slice.get(), a.peek(4))) : Flow::Error;
}

Flow do_BuildSlice(Activation& a, int parts) {
  PyObject* step = parts == 3 ? a.peek(1) : nullptr;
  return a.replace(parts, Ref::steal(PySlice_New(a.peek(parts), a.peek(parts - 1), step)));
}

}  // namespace graphlift::eval
