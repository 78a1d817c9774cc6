// Owns: see c_calls.h.
#include "capture/c_calls.h"

#include <algorithm>
#include <initializer_list>
#include <string_view>

#include "capture/arrays.h"
#include "capture/attribute_kinds.h"
#include "capture/attributes.h"
#include "capture/c_proxies.h"
#include "capture/c_reads.h"
#include "capture/calls.h"
#include "capture/containers.h"
#include "capture/gradient_hooks.h"
#include "capture/items.h"
#include "capture/set_order.h"
#include "cpython/hook.h"
#include "cpython/raw_dict.h"

namespace graphlift::capture {

using guards::GuardKind;
using guards::OriginId;
using guards::OriginKind;

namespace {

bool type_named(PyTypeObject* type, std::string_view name) { return type->tp_name == name; }

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

bool is_any_of(PyObject* descriptor, std::initializer_list<std::string_view> names) {
  const char* name = PyUnicode_AsUTF8(PyDescr_NAME(descriptor));
  return name && std::find(names.begin(), names.end(), name) != names.end();
}

bool is_descriptor(PyObject* callable) {
  return Py_IS_TYPE(callable, &PyMethodDescr_Type) || Py_IS_TYPE(callable, &PyWrapperDescr_Type) ||
         Py_IS_TYPE(callable, &PyClassMethodDescr_Type);
}

// What the methods of a builtin container find out.
Look look_of_method(PyObject* descriptor) {
  if (is_any_of(descriptor,
                {"append",  "appendleft", "extend",  "extendleft", "popleft",  "popitem",  "reverse",   "rotate",
                 "copy",    "clear",      "keys",    "values",     "items",    "__len__",  "__iter__",  "__reversed__",
                 "__add__", "__iadd__",   "__mul__", "__imul__",   "__rmul__", "__copy__", "__sizeof__"}))
    return Look::Nothing;
  PyTypeObject* of = PyDescr_TYPE(descriptor);
  const bool indexed = of == &PyList_Type || of == &PyTuple_Type || type_named(of, "collections.deque");
  if (indexed)
    return is_any_of(descriptor, {"insert", "pop", "__getitem__", "__setitem__", "__delitem__", "__init__"})
               ? Look::Nothing
               : Look::Compares;
  if (!PyType_IsSubtype(of, &PyDict_Type)) return Look::Compares;
  return is_any_of(descriptor, {"update", "__init__", "__or__", "__ror__", "__ior__"}) ? Look::Pairs : Look::Keys;
}

Look look_of(const CallArgs& call, uint16_t flags) {
  if (flags & kMakesDict) return Look::Pairs;
  if (flags & kCompares) return Look::Compares;
  if (flags & kReads) return Look::Reads;
  if (is_descriptor(call.callable)) {
    PyTypeObject* of = PyDescr_TYPE(call.callable);
    if (is_any_of(call.callable, {"__repr__", "__str__", "__format__"})) return Look::Reads;
    if (is_any_of(call.callable, {"__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__"})) return Look::Compares;
    if (is_container_type(of) || of == &PyTuple_Type || of == &PyFrozenSet_Type) return look_of_method(call.callable);
  }
  return flags & kShallow ? Look::Nothing : Look::Reads;
}

// Keys that are in a dict or set were looked at when they came in; what a key stands for is moved only.
bool is_looked_at(const CallArgs& call, Py_ssize_t i, Look look) {
  const bool keyed = call.nargs > 0 && (PyDict_Check(call.args[0]) || PyAnySet_Check(call.args[0]));
  if (!is_descriptor(call.callable) || !keyed) return look != Look::Pairs || i < call.nargs;
  if (look == Look::Keys || look == Look::Pairs) return i == 1 && i < call.nargs;
  return i > 0 || look == Look::Reads || PyDict_Check(call.args[0]);
}

// Code that makes sets of sets, or changes them.
bool makes_sets(const CallArgs& call) {
  auto is_set = [](PyTypeObject* type) {
    return PyType_IsSubtype(type, &PySet_Type) || PyType_IsSubtype(type, &PyFrozenSet_Type);
  };
  if (PyType_Check(call.callable)) return is_set(reinterpret_cast<PyTypeObject*>(call.callable));
  return is_descriptor(call.callable) && is_set(PyDescr_TYPE(call.callable)) &&
         !is_any_of(call.callable, {"pop", "__iter__", "__repr__", "__str__", "__reduce__"});
}

// Code that gives the same whatever the order of a set is.
bool ignores_order(const CallArgs& call, PyObject* set) {
  if (is_descriptor(call.callable))
    return makes_sets(call) && is_any_of(call.callable, {"isdisjoint", "issubset", "issuperset", "__contains__",
                                                         "__len__", "__eq__", "__ne__", "__lt__", "__le__", "__gt__",
                                                         "__ge__", "add", "discard", "remove", "clear", "__hash__"});
  for (const char* name : {"sorted", "min", "max"}) {
    if (call.callable != PyDict_GetItemString(PyEval_GetBuiltins(), name) || call.kwnames) continue;
    PyObject* item;
    Py_hash_t hash;
    for (Py_ssize_t at = 0; cpython::raw_set_next(set, &at, &item, &hash);)
      if (!is_value_constant(item)) return false;
    return true;
  }
  return false;
}

// False after a break: the order of a set is not to be known.
bool passes_in_order(Capture& capture, const CallArgs& call, PyObject* seen) {
  if (!PyAnySet_Check(seen) || ignores_order(call, seen)) return true;
  return makes_sets(call) ? order_goes_on(capture, seen) : order_is_read(capture, seen);
}

// The elements of an iterable that C code looks into. A container without containers from outside is harmless.
Ref looked_into(Capture& capture, const Ref& seen, uint16_t flags, Look look) {
  PyObject* object = seen.get();
  const bool container = PyList_CheckExact(object) || PyTuple_CheckExact(object) || PyAnySet_Check(object);
  if (container ? !holds_outside_container(capture, object) : !PyIter_Check(object)) return seen;
  return element_proxy(capture, object, flags & kHandsOn, look);
}

// False after a break: an argument that C code must not get.
bool may_pass(Capture& capture, const CallArgs& call, Py_ssize_t i, uint16_t flags) {
  PyObject* arg = call.args[i];
  const bool moved_only = (flags & kShallow) && i > 0;
  if (is_opaque(capture, arg) && !moved_only) {
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
  const Look look = look_of(call, flags);
  fix_value(capture, arg);
  if (is_callback(call, i, flags)) return call_proxy(capture, arg, flags & kCompares ? look : Look::Nothing);
  const bool moved_only = (flags & kShallow) && i > 0;
  const bool container = container_kind(arg) != Kind::None && capture.is_outside(arg);
  Ref seen = moved_only && !(container && reads_argument(call, i)) ? Ref::borrow(arg) : for_c_code(capture, arg);
  if (seen && !passes_in_order(capture, call, seen.get())) return Ref();
  const bool by_callback = has_callback(call, flags);  // which gets the elements, and gives what is looked at
  if (seen && looks_into) seen = looked_into(capture, seen, flags, by_callback ? Look::Nothing : look);
  if (seen && !by_callback && is_looked_at(call, i, look) && !look_at(capture, seen.get(), look, call.callable))
    return Ref();
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

namespace {

// A method of containers that changes nothing.
bool reads_alone(const CallArgs& call) {
  return is_descriptor(call.callable) &&
         is_any_of(call.callable, {"get", "keys", "values", "items", "copy", "index", "count", "__len__", "__iter__",
                                   "__next__", "__contains__", "__eq__", "__ne__", "issubset", "issuperset", "union",
                                   "intersection", "difference", "isdisjoint"});
}

// A method that may take something out of an outside container.
bool drops_items(Capture& capture, const CallArgs& call) {
  if (call.nargs == 0 || !capture.is_outside(call.args[0])) return false;
  return !reads_alone(call) &&
         (!is_descriptor(call.callable) || !is_any_of(call.callable, {"append", "appendleft", "extend", "extendleft",
                                                                      "insert", "add", "setdefault", "__getitem__"}));
}

}  // namespace

Ref plain_call(const CallArgs& call) {
  return Ref::steal(PyObject_Vectorcall(call.callable, call.args, static_cast<size_t>(call.nargs), call.kwnames));
}

Ref run_prepared(Capture& capture, const CallArgs& call, uint16_t flags) {
  Prepared prepared;
  if (!prepare(capture, call, flags, &prepared)) return Ref();
  const bool changes = (flags & kMutates) && call.nargs > 0 && !reads_alone(call);
  if (changes && !may_act(capture)) return Ref();
  if (changes) note_mutation(capture, call.args[0]);
  if (flags & kMutates) capture.dropped |= drops_items(capture, call);
  Ref result = Ref::steal(
      PyObject_Vectorcall(call.callable, prepared.args.data(), static_cast<size_t>(call.nargs), call.kwnames));
  if (result && PyType_Check(result.get()) && makes_type(call)) {
    capture.fresh_types.insert(result.get());
    capture.keep_alive.push_back(result);
  }
  if (capture.pending) return Ref();
  result = without_address(capture, std::move(result), prepared.args.data(), call.nargs, call.callable);
  return from_c_code(capture, std::move(result));
}

bool is_hash_of(PyObject* descriptor) {
  return is_descriptor(descriptor) && PyUnicode_CompareWithASCIIString(PyDescr_NAME(descriptor), "__hash__") == 0;
}

bool is_key_hash(Capture& capture) {
  if (capture.hash_reads > 0 || capture.frames.size() < 2) return false;  // the root returns it to its caller
  const PyCodeObject* code = capture.frames.back().code();
  return PyUnicode_CompareWithASCIIString(code->co_name, "__hash__") == 0;
}

Ref hash_call(Capture& capture, const CallArgs& call) {
  if (call.nargs == 1 && !call.kwnames && hashes_address(capture, call.args[0])) {
    if (!is_key_hash(capture))
      return break_here(capture, "unknown_callable", "hash() of an object from outside, which is its address");
    capture.address_hashed = true;
    if (!look_at(capture, call.args[0], Look::Compares, call.callable)) return Ref();
    return Ref::steal(PyLong_FromSsize_t(PyObject_Hash(call.args[0])));
  }
  const bool reads = !is_key_hash(capture);
  capture.hash_reads += reads;
  Ref result = run_prepared(capture, call, kCompares);
  capture.hash_reads -= reads;
  return result;
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
    if (torch_layer::is_generator(call.args[i])) {
      if (!capture.tie_generator(call.args[i], describe(call.callable))) return Ref();
      prepared.args.push_back(call.args[i]);
      continue;
    }
    if (is_opaque(capture, call.args[i]))
      return break_here(capture, "unknown_callable",
                        describe(call.callable) + " with an object of type " + Py_TYPE(call.args[i])->tp_name);
    Ref seen = for_c_code(capture, call.args[i]);
    if (!seen) return seen;
    if (holds_outside_container(capture, seen.get()))
      return break_here(capture, "nested_outside", describe(call.callable));
    if (!look_at(capture, seen.get(), Look::Reads, call.callable)) return Ref();
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

// Of a class that C code makes instances of as it makes those of `base`.
uint16_t constructor_flags(PyTypeObject* base) {
  if (base == &PySet_Type || base == &PyFrozenSet_Type) return kShallow | kLooksInto | kHandsOn | kCompares;
  if (PyType_IsSubtype(base, &PyDict_Type)) return kShallow | kLooksInto | kMakesDict;
  const bool value = is_pure_type(base) && base != &PyBaseObject_Type && base != &PyTuple_Type;
  return value ? kPure : kShallow;
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
  if (!python) return run_prepared(capture, call, constructor_flags(base));
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
  if (is_container_type(type)) return run_prepared(capture, call, constructor_flags(type));
  if (is_array_number_type(type)) return make_array_number(capture, call);
  if (!is_python_class(type)) return break_here(capture, "unknown_callable", describe(call.callable));
  return make_instance(capture, call, type);
}

}  // namespace graphlift::capture
