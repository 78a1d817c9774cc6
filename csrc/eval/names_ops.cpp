// Owns: micro-ops on names: globals, builtins, class bodies, imports.
#include "eval/activation.h"
#include "eval/errors.h"

namespace graphlift::eval {
namespace {

PyObject* locals_or_error(const Activation& a, const char* message) {
  PyObject* mapping = a.frame.locals_mapping();
  if (!mapping) PyErr_SetString(PyExc_SystemError, message);
  return mapping;
}

}  // namespace

Flow do_LoadGlobal(Activation& a, int i) { return a.push_result(a.semantics.load_global(a.frame, a.name(i))); }

Flow do_StoreGlobal(Activation& a, int i) {
  return a.consume(1, a.semantics.store_global(a.frame, a.name(i), a.peek(1)));
}

Flow do_DeleteGlobal(Activation& a, int i) {
  return a.consume(0, a.semantics.store_global(a.frame, a.name(i), nullptr));
}

Flow do_LoadName(Activation& a, int i) { return a.push_result(a.semantics.load_name(a.frame, a.name(i))); }

Flow do_StoreName(Activation& a, int i) { return a.consume(1, a.semantics.store_name(a.frame, a.name(i), a.peek(1))); }

Flow do_DeleteName(Activation& a, int i) { return a.consume(0, a.semantics.store_name(a.frame, a.name(i), nullptr)); }

Flow do_LoadLocals(Activation& a, int) { return a.push_result(Ref::borrow(locals_or_error(a, "no locals"))); }

Flow do_LoadFromDictOrGlobals(Activation& a, int i) {
  Ref value = mapping_get(a.peek(1), a.name(i));
  if (!value && PyErr_Occurred()) return Flow::Error;
  return a.replace(1, value ? std::move(value) : a.semantics.load_global(a.frame, a.name(i)));
}

Flow do_LoadFromDictOrDeref(Activation& a, int slot) {
  Ref value = mapping_get(a.peek(1), PyTuple_GET_ITEM(a.code->co_localsplusnames, slot));
  if (!value && !PyErr_Occurred()) {
    value = a.semantics.load_cell(a.frame, a.slots[slot]);
    if (!value && !PyErr_Occurred()) return unbound_cell(a, slot);
  }
  return a.replace(1, std::move(value));
}

Flow do_SetupAnnotations(Activation& a, int) {
  PyObject* mapping = locals_or_error(a, "no locals found when setting up annotations");
  if (!mapping) return Flow::Error;
  PyObject* name = interned("__annotations__");
  Ref present = mapping_get(mapping, name);
  if (present) return Flow::Next;
  if (PyErr_Occurred()) return Flow::Error;
  Ref fresh = Ref::steal(PyDict_New());
  return fresh && PyObject_SetItem(mapping, name, fresh.get()) == 0 ? Flow::Next : Flow::Error;
}

Flow do_ImportName(Activation& a, int i) {
  return a.replace(2, a.semantics.import_name(a.frame, a.name(i), a.peek(1), a.peek(2)));
}

Flow do_ImportFrom(Activation& a, int i) {
  return a.push_result(a.semantics.import_from(a.frame, a.peek(1), a.name(i)));
}

Flow do_ImportStar(Activation& a, int) { return a.consume(1, a.semantics.import_star(a.frame, a.peek(1))); }

Flow do_LoadBuildClass(Activation& a, int) { return a.push_result(a.semantics.build_class(a.frame)); }

}  // namespace graphlift::eval
