// Owns: micro-ops on attributes.
#include "eval/activation.h"

namespace graphlift::eval {
namespace {

// A callable and the receiver to call it with, in the order that the following call expects: [callable, self], or,
// without a receiver, null before (null_first) or behind the callable.
Flow push_callable(Activation& a, int operands, Ref callable, Ref self, bool null_first) {
  if (!callable) return Flow::Error;
  if (!self && null_first) std::swap(callable, self);
  a.drop(operands);
  a.push(std::move(callable));
  a.push(std::move(self));
  return Flow::Next;
}

Flow load_method(Activation& a, int i, bool null_first) {
  Ref self;
  Ref callable = a.semantics.get_method(a.peek(1), a.name(i), &self);
  return push_callable(a, 1, std::move(callable), std::move(self), null_first);
}

Ref super_attribute(Activation& a, int arg) {
  PyObject *super_type = a.peek(3), *name = a.name(arg >> 2);
  const bool two_arguments = (arg & 2) != 0;
  if (two_arguments || super_type == reinterpret_cast<PyObject*>(&PySuper_Type)) {
    return a.semantics.get_super_attr(super_type, a.peek(2), a.peek(1), name);
  }
  Ref object = a.semantics.call(super_type, nullptr, 0, nullptr);  // not the builtin: it was called without arguments
  return object ? a.semantics.get_attr(object.get(), name) : Ref();
}

Flow load_super(Activation& a, int arg, bool null_first) {
  Ref value = super_attribute(a, arg);
  if (arg & 1) return push_callable(a, 3, std::move(value), Ref(), null_first);
  return a.replace(3, std::move(value));
}

}  // namespace

Flow do_LoadAttr(Activation& a, int i) { return a.replace(1, a.semantics.get_attr(a.peek(1), a.name(i))); }
Flow do_LoadMethod(Activation& a, int i) { return load_method(a, i, false); }
Flow do_LoadMethodNullFirst(Activation& a, int i) { return load_method(a, i, true); }
Flow do_LoadSuper(Activation& a, int arg) { return load_super(a, arg, false); }
Flow do_LoadSuperNullFirst(Activation& a, int arg) { return load_super(a, arg, true); }

Flow do_StoreAttr(Activation& a, int i) { return a.consume(2, a.semantics.set_attr(a.peek(1), a.name(i), a.peek(2))); }

Flow do_DeleteAttr(Activation& a, int i) { return a.consume(1, a.semantics.set_attr(a.peek(1), a.name(i), nullptr)); }

}  // namespace graphlift::eval
