// Owns: see c_calls.h.
#include "capture/c_calls.h"

#include <string_view>

#include "capture/attribute_kinds.h"
#include "capture/attributes.h"
#include "capture/c_proxies.h"
#include "capture/calls.h"
#include "capture/containers.h"
#include "cpython/hook.h"
#include "cpython/raw_dict.h"

namespace graphlift::capture {

using guards::GuardKind;
using guards::OriginId;
using guards::OriginKind;

namespace {

// An outside object of a C type whose state C code would read.
bool opaque(Capture& capture, PyObject* object) {
  if (!capture.is_outside(object) || container_kind(object) != Kind::None) return false;
  PyTypeObject* type = Py_TYPE(object);
  if (PyFunction_Check(object) || PyMethod_Check(object) || PyCell_Check(object)) return false;
  return !is_python_class(type);
}

bool type_is(PyObject* object, std::string_view name) { return Py_TYPE(object)->tp_name == name; }

// One call's arguments as C code gets them.
struct Prepared {
  std::vector<Ref> hold;
  std::vector<PyObject*> args;
};

bool is_callback(const CallArgs& call, Py_ssize_t i, uint16_t flags) {
  if (i < call.nargs) return (i == 0 && (flags & kCallsFirst)) || (i == 1 && (flags & kCallsSecond));
  PyObject* name = PyTuple_GET_ITEM(call.kwnames, i - call.nargs);
  return ((flags & (kCallsKey | kCallsSecond)) && PyUnicode_CompareWithASCIIString(name, "key") == 0) ||
         ((flags & kCallsSecond) && PyUnicode_CompareWithASCIIString(name, "func") == 0);
}

bool has_callback(const CallArgs& call, uint16_t flags) {
  const Py_ssize_t total = call.nargs + (call.kwnames ? PyTuple_GET_SIZE(call.kwnames) : 0);
  for (Py_ssize_t i = 0; i < total; ++i)
    if (is_callback(call, i, flags) && call.args[i] != Py_None) return true;
  return false;
}

// The elements of an iterable that C code looks into. A container without containers from outside is harmless.
Ref looked_into(Capture& capture, const Ref& seen, uint16_t flags) {
  PyObject* object = seen.get();
  const bool container = PyList_CheckExact(object) || PyTuple_CheckExact(object) || PyAnySet_Check(object);
  if (container ? !holds_outside_container(capture, object) : !PyIter_Check(object)) return seen;
  return element_proxy(capture, object, flags & kHandsOn);
}

// False after a break: an argument that C code must not get.
bool may_pass(Capture& capture, const CallArgs& call, Py_ssize_t i, uint16_t flags) {
  PyObject* arg = call.args[i];
  const bool moved_only = (flags & kShallow) && i > 0;
  if (opaque(capture, arg) && !moved_only) {
    break_here(capture, "unknown_callable", describe(call.callable) + " on an object of type " + Py_TYPE(arg)->tp_name);
  } else if (is_outside_iterator(capture, arg) && reads_argument(call, i)) {
    break_here(capture, PyGen_Check(arg) ? "inner_generator" : "loop_boundary");
  } else {
    return true;
  }
  return false;
}

Ref prepared_argument(Capture& capture, const CallArgs& call, Py_ssize_t i, uint16_t flags, bool looks_into) {
  PyObject* arg = call.args[i];
  if (is_callback(call, i, flags)) return call_proxy(capture, arg);
  const bool moved_only = (flags & kShallow) && i > 0;
  const bool container = container_kind(arg) != Kind::None && capture.is_outside(arg);
  Ref seen = moved_only && !(container && reads_argument(call, i)) ? Ref::borrow(arg) : for_c_code(capture, arg);
  if (seen && looks_into) seen = looked_into(capture, seen, flags);
  if (seen && (!(flags & kSymbolic) || (!(flags & kShallow) && torch_layer::is_graph_float(seen.get()))))
    seen = capture.concrete(seen.get());
  return seen;
}

bool prepare(Capture& capture, const CallArgs& call, uint16_t flags, Prepared* out) {
  const Py_ssize_t total = call.nargs + (call.kwnames ? PyTuple_GET_SIZE(call.kwnames) : 0);
  const bool looks_into = (flags & kLooksInto) && !((flags & kHandsOn) && has_callback(call, flags));
  for (Py_ssize_t i = 0; i < total; ++i) {
    if (!may_pass(capture, call, i, flags)) return false;
    Ref seen = prepared_argument(capture, call, i, flags, looks_into);
    if (!seen) return false;
    // What an outside container holds is known since it was admitted.
    if (!(flags & (kShallow | kLooksInto)) && holds_outside_container(capture, seen.get())) {
      break_here(capture, "nested_outside", describe(call.callable));
      return false;
    }
    out->args.push_back(seen.get());
    out->hold.push_back(std::move(seen));
  }
  return true;
}

}  // namespace

// Methods that store their argument keep the outside object itself; all others read it.
bool reads_argument(const CallArgs& call, Py_ssize_t index) {
  static const char* const kStores[] = {"append",     "add",    "insert", "setdefault", "__setitem__",
                                        "appendleft", "remove", "index",  "count",      "__contains__",
                                        "discard",    "get",    "pop"};
  (void)index;
  SavedError error;
  Ref name = Ref::steal(PyObject_GetAttrString(call.callable, "__name__"));
  if (!name || !PyUnicode_Check(name.get())) {
    PyErr_Clear();
    return true;
  }
  for (const char* store : kStores)
    if (PyUnicode_CompareWithASCIIString(name.get(), store) == 0) return false;
  return true;
}

namespace {

bool is_metaclass(PyObject* object) {
  return PyType_Check(object) && PyType_IsSubtype(reinterpret_cast<PyTypeObject*>(object), &PyType_Type);
}

// meta(name, bases, namespace) or type.__new__(meta, name, bases, namespace)
bool makes_type(const CallArgs& call) {
  if (is_metaclass(call.callable)) return call.nargs == 3;
  PyObject* self = PyCFunction_Check(call.callable) ? PyCFunction_GET_SELF(call.callable) : nullptr;
  return self && is_metaclass(self) && call.nargs == 4 && is_metaclass(call.args[0]);
}

}  // namespace

Ref run_prepared(Capture& capture, const CallArgs& call, uint16_t flags) {
  Prepared prepared;
  if (!prepare(capture, call, flags, &prepared)) return Ref();
  if ((flags & kMutates) && call.nargs > 0) note_mutation(capture, call.args[0]);
  Ref result = Ref::steal(
      PyObject_Vectorcall(call.callable, prepared.args.data(), static_cast<size_t>(call.nargs), call.kwnames));
  if (result && PyType_Check(result.get()) && makes_type(call)) {
    capture.fresh_types.insert(result.get());
    capture.keep_alive.push_back(result);
  }
  if (capture.pending) return Ref();
  return from_c_code(capture, std::move(result));
}

PyTypeObject* solid_base(PyTypeObject* type) {
  while (type->tp_base && is_python_class(type)) type = type->tp_base;
  return type;
}

PyObject* method_wrapper_self(PyObject* wrapper) {
  Ref self = Ref::steal(PyObject_GetAttrString(wrapper, "__self__"));
  return self.get();  // the wrapper keeps it
}

bool c_descriptor_matches(PyObject* descriptor, PyObject* bound) {
  if (Py_IS_TYPE(descriptor, &PyMethodDescr_Type) && PyCFunction_Check(bound))
    return reinterpret_cast<PyMethodDescrObject*>(descriptor)->d_method->ml_meth == PyCFunction_GET_FUNCTION(bound);
  if (Py_IS_TYPE(descriptor, &PyWrapperDescr_Type) && Py_IS_TYPE(bound, &_PyMethodWrapper_Type)) {
    Ref name = Ref::steal(PyObject_GetAttrString(bound, "__objclass__"));
    PyErr_Clear();
    return name && name.get() == reinterpret_cast<PyObject*>(PyDescr_TYPE(descriptor));
  }
  return false;
}

Ref call_tensor_function(Capture& capture, const CallArgs& call) {
  Prepared prepared;
  const Py_ssize_t total = call.nargs + (call.kwnames ? PyTuple_GET_SIZE(call.kwnames) : 0);
  for (Py_ssize_t i = 0; i < total; ++i) {
    if (type_is(call.args[i], "torch._C.Generator"))
      return break_here(capture, "generator_argument", describe(call.callable));
    if (opaque(capture, call.args[i]))
      return break_here(capture, "unknown_callable",
                        describe(call.callable) + " with an object of type " + Py_TYPE(call.args[i])->tp_name);
    Ref seen = for_c_code(capture, call.args[i]);
    if (!seen) return seen;
    if (holds_outside_container(capture, seen.get()))
      return break_here(capture, "nested_outside", describe(call.callable));
    prepared.args.push_back(seen.get());
    prepared.hold.push_back(std::move(seen));
  }
  Ref result = Ref::steal(
      PyObject_Vectorcall(call.callable, prepared.args.data(), static_cast<size_t>(call.nargs), call.kwnames));
  if (capture.pending) return Ref();
  return result;
}

namespace {

// Guards how a Python class makes its instances; true when Python code takes the arguments first.
int constructor_parts(Capture& capture, PyTypeObject* type, bool* python) {
  *python = false;
  for (const char* part : {"__new__", "__init__"}) {
    Ref name = Ref::steal(PyUnicode_InternFromString(part));
    PyObject* found = name ? capture.type_lookup(type, name.get()) : nullptr;
    if (!found) continue;
    Ref inner = Ref::borrow(found);
    if (Py_IS_TYPE(found, &PyStaticMethod_Type)) inner = Ref::steal(PyObject_GetAttrString(found, "__func__"));
    if (!inner) return -1;
    if (!PyFunction_Check(inner.get())) continue;
    *python = true;
    if (know_function(capture, inner.get()) < 0) return -1;
  }
  return 0;
}

bool acts_when_it_dies(PyTypeObject* type) {
  Ref name = Ref::steal(PyUnicode_InternFromString("__del__"));
  return name && _PyType_Lookup(type, name.get());
}

Ref make_instance(Capture& capture, const CallArgs& call, PyTypeObject* type) {
  PyTypeObject* base = solid_base(type);
  const bool known = base == &PyBaseObject_Type || is_pure_type(base) || is_container_type(base) ||
                     is_known_fresh_type(base) || torch_layer::is_known_base(base);
  if (!known) return break_here(capture, "unknown_callable", describe(call.callable));
  // When an instance dies is not known to the region, nor may one of a given-up attempt do anything.
  if (acts_when_it_dies(type)) return break_here(capture, "unknown_callable", describe(call.callable) + ".__del__");
  bool python = false;
  if (constructor_parts(capture, type, &python) < 0) return Ref();
  if (!python) return run_prepared(capture, call, kShallow);
  Ref result = Ref::steal(PyObject_Vectorcall(call.callable, call.args, static_cast<size_t>(call.nargs), call.kwnames));
  if (capture.pending) return Ref();
  if (result && PyType_Check(result.get())) capture.fresh_types.insert(result.get());
  return result;
}

}  // namespace

Ref call_type(Capture& capture, const CallArgs& call) {
  auto* type = reinterpret_cast<PyTypeObject*>(call.callable);
  if (const CallableRow* row = find_constructor(type))
    return row->rule ? row->rule(capture, call) : run_prepared(capture, call, row->flags);
  if (Py_TYPE(type)->tp_call != PyType_Type.tp_call) {
    Ref meta_call = special_method(capture, call.callable, "__call__");
    if (meta_call && !Py_IS_TYPE(meta_call.get(), &_PyMethodWrapper_Type))
      return graphlift::capture::call(capture, meta_call.get(), call.args, call.nargs, call.kwnames);
    if (PyErr_Occurred()) return Ref();
  }
  if (PyType_IsSubtype(type, reinterpret_cast<PyTypeObject*>(PyExc_BaseException)) && !is_python_class(type))
    return run_prepared(capture, call, kShallow);
  if (is_pure_type(type)) return run_prepared(capture, call, kPure);
  if (is_container_type(type)) return run_prepared(capture, call, kShallow);
  if (!is_python_class(type)) return break_here(capture, "unknown_callable", describe(call.callable));
  return make_instance(capture, call, type);
}

}  // namespace graphlift::capture
