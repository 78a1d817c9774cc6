// Owns: see c_calls.h.
#include "capture/c_calls.h"

#include <string_view>

#include "capture/attribute_kinds.h"
#include "capture/attributes.h"
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

bool prepare(Capture& capture, const CallArgs& call, uint8_t flags, Prepared* out) {
  const Py_ssize_t total = call.nargs + (call.kwnames ? PyTuple_GET_SIZE(call.kwnames) : 0);
  for (Py_ssize_t i = 0; i < total; ++i) {
    PyObject* arg = call.args[i];
    const bool moved_only = (flags & kShallow) && i > 0;
    if (opaque(capture, arg) && !moved_only) {
      break_here(capture, "unknown_callable",
                 describe(call.callable) + " on an object of type " + Py_TYPE(arg)->tp_name);
      return false;
    }
    if (!(flags & kShallow) && holds_outside_container(capture, arg)) {
      break_here(capture, "nested_outside", describe(call.callable));
      return false;
    }
    Ref seen = moved_only && !(container_kind(arg) != Kind::None && capture.is_outside(arg) && reads_argument(call, i))
                   ? Ref::borrow(arg)
                   : for_c_code(capture, arg);
    if (seen && !(flags & kSymbolic)) seen = capture.concrete(seen.get());
    if (!seen) return false;
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

Ref run_prepared(Capture& capture, const CallArgs& call, uint8_t flags) {
  Prepared prepared;
  if (!prepare(capture, call, flags, &prepared)) return Ref();
  if ((flags & kMutates) && call.nargs > 0) note_mutation(capture, call.args[0]);
  Ref result = Ref::steal(
      PyObject_Vectorcall(call.callable, prepared.args.data(), static_cast<size_t>(call.nargs), call.kwnames));
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

Ref make_instance(Capture& capture, const CallArgs& call, PyTypeObject* type) {
  PyTypeObject* base = solid_base(type);
  const bool known = base == &PyBaseObject_Type || is_pure_type(base) || is_container_type(base) ||
                     is_known_fresh_type(base) || torch_layer::is_known_base(base);
  if (!known) return break_here(capture, "unknown_callable", describe(call.callable));
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

namespace {

bool is_partial(PyObject* object) {
  static PyObject* type = [] {
    Ref module = Ref::steal(PyImport_ImportModule("functools"));
    return module ? PyObject_GetAttrString(module.get(), "partial") : nullptr;
  }();
  return type && Py_IS_TYPE(object, reinterpret_cast<PyTypeObject*>(type));
}

Ref partial_part(Capture& capture, PyObject* partial, const char* name) {
  Ref value = Ref::steal(PyObject_GetAttrString(partial, name));
  Outside* outside = capture.objects.find(partial);
  if (!value || !outside) return value;
  Ref key = Ref::steal(PyUnicode_InternFromString(name));
  return capture.admit(value.get(), capture.origins().child(outside->origin, OriginKind::PartialPart, key.get()));
}

Ref call_partial(Capture& capture, const CallArgs& call) {
  Ref function = partial_part(capture, call.callable, "func");
  Ref args = function ? partial_part(capture, call.callable, "args") : Ref();
  args = args ? for_c_code(capture, args.get()) : args;
  Ref keywords = args ? partial_part(capture, call.callable, "keywords") : Ref();
  keywords = keywords ? for_c_code(capture, keywords.get()) : keywords;
  if (!keywords) return keywords;
  Ref given = Ref::steal(PyTuple_New(call.nargs));
  if (!given) return given;
  for (Py_ssize_t i = 0; i < call.nargs; ++i) PyTuple_SET_ITEM(given.get(), i, Py_NewRef(call.args[i]));
  Ref all = Ref::steal(PySequence_Concat(args.get(), given.get()));
  Ref merged = all ? Ref::steal(PyDict_Copy(keywords.get())) : Ref();
  if (!merged) return merged;
  const Py_ssize_t named = call.kwnames ? PyTuple_GET_SIZE(call.kwnames) : 0;
  for (Py_ssize_t i = 0; i < named; ++i)
    if (PyDict_SetItem(merged.get(), PyTuple_GET_ITEM(call.kwnames, i), call.args[call.nargs + i]) < 0) return Ref();
  return call_ex(capture, function.get(), all.get(), merged.get());
}

// logger.warning_once and the like: the cache is what makes them once.
bool says_once(PyObject* function) {
  Ref name = Ref::steal(PyObject_GetAttrString(function, "__name__"));
  const char* text = name && PyUnicode_Check(name.get()) ? PyUnicode_AsUTF8(name.get()) : nullptr;
  PyErr_Clear();
  return text && std::string_view(text).ends_with("_once");
}

// The referent is found again through the weakref; one that died is None.
Ref call_weakref(Capture& capture, const CallArgs& call) {
  Outside* outside = capture.objects.find(call.callable);
  PyObject* target = cpython::weakref_target(call.callable);
  if (!outside || call.nargs > 0 || call.kwnames)
    return Ref::steal(PyObject_Vectorcall(call.callable, call.args, static_cast<size_t>(call.nargs), call.kwnames));
  const OriginId origin = capture.origins().child(outside->origin, OriginKind::WeakTarget);
  if (target) return capture.admit(target, origin);
  capture.guards.add(origin, GuardKind::Missing);
  return Ref::borrow(Py_None);
}

// torch.ops.<namespace>.<name> and its overloads. What runs in it is the operator's own: kernels, and for a custom
// operator the Python code that torch.library was given, which is part of the operator and not of the program.
Ref call_operator_object(Capture& capture, const CallArgs& call) {
  if (Outside* outside = capture.objects.find(call.callable))
    capture.guards.add(outside->origin, GuardKind::Is, call.callable);
  Ref function = Ref::steal(PyObject_GetAttrString(call.callable, "_op"));
  if (!function) return function;
  cpython::HookScope nobody(nullptr);
  return call_tensor_function(capture, {function.get(), call.args, call.nargs, call.kwnames});
}

}  // namespace

bool call_known_object(Capture& capture, const CallArgs& call, Ref* result) {
  if (is_partial(call.callable)) {
    *result = call_partial(capture, call);
    return true;
  }
  if (PyWeakref_CheckRefExact(call.callable)) {
    *result = call_weakref(capture, call);
    return true;
  }
  if (torch_layer::is_operator_object(call.callable)) {
    *result = call_operator_object(capture, call);
    return true;
  }
  if (type_is(call.callable, "functools._lru_cache_wrapper")) {
    // The cache only saves work: the function itself gives the same value, with everything it reads guarded.
    Ref wrapped = Ref::steal(PyObject_GetAttrString(call.callable, "__wrapped__"));
    if (wrapped && says_once(wrapped.get())) {
      *result = defer_call(capture, call);
      return true;
    }
    *result = wrapped ? graphlift::capture::call(capture, wrapped.get(), call.args, call.nargs, call.kwnames) : Ref();
    return true;
  }
  for (const char* name : {"operator.itemgetter", "operator.methodcaller", "operator.attrgetter"})
    if (type_is(call.callable, name)) {
      const bool instance =
          call.nargs > 0 && capture.is_outside(call.args[0]) && container_kind(call.args[0]) == Kind::None;
      *result = instance ? break_here(capture, "unknown_callable", name) : run_prepared(capture, call, kPure);
      return true;
    }
  return false;
}

}  // namespace graphlift::capture
