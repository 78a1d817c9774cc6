// Owns: see calls.h.
#include "capture/calls.h"

#include "capture/arrays.h"
#include "capture/attribute_kinds.h"
#include "capture/attributes.h"
#include "capture/c_calls.h"
#include "capture/callables.h"
#include "capture/computed_arrays.h"
#include "capture/containers.h"
#include "capture/dynamo_calls.h"
#include "capture/items.h"

namespace graphlift::capture {

using guards::GuardKind;
using guards::OriginId;
using guards::OriginKind;

namespace {

// The call binds what is in the dictionary as it is: numbers that vary elsewhere do not vary here.
int fix_items(Capture& capture, PyObject* dict) {
  const Ref shadow = for_c_code(capture, dict);
  if (!shadow) return -1;
  PyObject *key, *value;
  for (Py_ssize_t at = 0; PyDict_Next(shadow.get(), &at, &key, &value);)
    if (!capture.concrete(value)) return -1;
  return 0;
}

// Cells and default values of a function from outside become outside objects themselves.
int know_parts(Capture& capture, PyObject* function, OriginId origin, bool guard) {
  auto* f = reinterpret_cast<PyFunctionObject*>(function);
  if (guard) {
    capture.guards.add(capture.origins().child(origin, OriginKind::Code), GuardKind::Is, f->func_code);
    // Another function of the same code may have other ones.
    if (capture.origins().at(origin).kind != OriginKind::Constant)
      capture.guards.add(capture.origins().child(origin, OriginKind::FunctionGlobals), GuardKind::Is, f->func_globals);
    const OriginId defaults = capture.origins().child(origin, OriginKind::Defaults);
    if (f->func_defaults)
      capture.guards.add(defaults, GuardKind::Is, f->func_defaults);
    else
      capture.guards.add(defaults, GuardKind::Missing);
  }
  if (f->func_defaults) {
    const OriginId defaults = capture.origins().child(origin, OriginKind::Defaults);
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(f->func_defaults); ++i) {
      PyObject* value = PyTuple_GET_ITEM(f->func_defaults, i);
      if (is_value_constant(value)) continue;  // fixed by the tuple's identity
      if (!capture.admit(value, capture.origins().child(defaults, OriginKind::TupleItem, nullptr, static_cast<int>(i))))
        return -1;
    }
  }
  if (f->func_kwdefaults) {
    PyObject* dict = f->func_kwdefaults;
    capture.know(dict, capture.origins().child(origin, OriginKind::KwDefaults));
    if (fix_items(capture, dict) < 0) return -1;
  } else if (guard) {
    capture.guards.add(capture.origins().child(origin, OriginKind::KwDefaults), GuardKind::Missing);
  }
  const Py_ssize_t cells = f->func_closure ? PyTuple_GET_SIZE(f->func_closure) : 0;
  for (Py_ssize_t i = 0; i < cells; ++i) {
    PyObject* cell = PyTuple_GET_ITEM(f->func_closure, i);
    capture.know(cell, capture.origins().child(origin, OriginKind::Closure, nullptr, static_cast<int>(i)));
  }
  return 0;
}

bool is_disabled(PyObject* function) {
  PyObject* dict = reinterpret_cast<PyFunctionObject*>(function)->func_dict;
  if (!dict) return false;
  for (const char* mark : {"_graphlift_disable", "_torchdynamo_disable"}) {
    PyObject* value = PyDict_GetItemString(dict, mark);
    if (value && value != Py_False && value != Py_None) return true;
  }
  return false;
}

Ref call_function(Capture& capture, PyObject* function, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames) {
  if (const CallableRow* row = find_callable(function)) return row->rule(capture, {function, args, nargs, kwnames});
  if (hides_from_dynamo(function)) {
    Ref hidden = hidden_from_dynamo(capture, function);
    return hidden ? call(capture, hidden.get(), args, nargs, kwnames) : hidden;
  }
  if (is_note_for_dynamo(function)) return Ref::borrow(Py_None);
  if (is_disabled(function)) return break_here(capture, "disabled", describe(function));
  auto* code = reinterpret_cast<PyCodeObject*>(PyFunction_GET_CODE(function));
  if (code->co_flags & (CO_COROUTINE | CO_ASYNC_GENERATOR | CO_ITERABLE_COROUTINE))
    return break_here(capture, "coroutine", describe(function));
  if (know_function(capture, function) < 0) return Ref();
  const bool asks_hash = PyUnicode_CompareWithASCIIString(code->co_name, "__hash__") == 0;
  capture.hash_reads += asks_hash;
  Ref result = Ref::steal(PyObject_Vectorcall(function, args, static_cast<size_t>(nargs), kwnames));
  capture.hash_reads -= asks_hash;
  return result;
}

// Arguments with one more in front.
struct Prepended {
  Prepended(PyObject* first, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames) {
    const Py_ssize_t total = nargs + (kwnames ? PyTuple_GET_SIZE(kwnames) : 0);
    values.reserve(static_cast<size_t>(total) + 1);
    values.push_back(first);
    values.insert(values.end(), args, args + total);
  }
  std::vector<PyObject*> values;
};

Ref call_method_object(Capture& capture, PyObject* method, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames) {
  Ref function = Ref::borrow(PyMethod_GET_FUNCTION(method));
  Ref self = Ref::borrow(PyMethod_GET_SELF(method));
  if (Outside* outside = capture.objects.find(method)) {
    const OriginId origin = outside->origin;
    function = capture.admit(function.get(), capture.origins().child(origin, OriginKind::MethodFunction));
    self = function ? capture.admit(self.get(), capture.origins().child(origin, OriginKind::MethodSelf)) : Ref();
    if (!self) return self;
  }
  Prepended all(self.get(), args, nargs, kwnames);
  return call(capture, function.get(), all.values.data(), nargs + 1, kwnames);
}

// A method bound to an object by C: the row is that of the descriptor on the type.
Ref call_bound_c_method(Capture& capture, PyObject* callable, PyObject* const* args, Py_ssize_t nargs,
                        PyObject* kwnames) {
  PyObject* self =
      Py_IS_TYPE(callable, &_PyMethodWrapper_Type) ? method_wrapper_self(callable) : PyCFunction_GET_SELF(callable);
  Ref hold_self = Ref::borrow(self);
  Ref name = Ref::steal(PyObject_GetAttrString(callable, "__name__"));
  if (!name || !self) return break_here(capture, "unknown_callable", describe(callable));
  PyObject* descriptor = _PyType_Lookup(Py_TYPE(self), name.get());
  // A base class's method reached through super(): look along the bases for the C descriptor.
  PyObject* mro = Py_TYPE(self)->tp_mro;
  for (Py_ssize_t i = 0; descriptor && !c_descriptor_matches(descriptor, callable) && i < PyTuple_GET_SIZE(mro); ++i) {
    PyObject* own = cpython_type_dict(reinterpret_cast<PyTypeObject*>(PyTuple_GET_ITEM(mro, i)));
    PyObject* found = own ? PyDict_GetItemWithError(own, name.get()) : nullptr;
    if (found && c_descriptor_matches(found, callable)) descriptor = found;
  }
  if (!descriptor || !c_descriptor_matches(descriptor, callable))
    return break_here(capture, "unknown_callable", describe(callable));
  if (Outside* outside = capture.objects.find(callable)) {
    const OriginId origin = outside->origin;
    if (!PyCFunction_Check(callable) || _PyType_Lookup(Py_TYPE(self), name.get()) != descriptor)
      return break_here(capture, "unknown_callable", describe(callable));
    capture.guards.add(capture.origins().child(origin, OriginKind::MethodFunction), GuardKind::Is, descriptor);
    hold_self = capture.admit(self, capture.origins().child(origin, OriginKind::MethodSelf));
    if (!hold_self) return hold_self;
    self = hold_self.get();
  }
  Prepended all(self, args, nargs, kwnames);
  return call(capture, descriptor, all.values.data(), nargs + 1, kwnames);
}

// The C class method that `bound` was made from; a class between may have a Python method of the same name that called
// super(). Null: it was made from another kind of descriptor.
PyObject* class_method_of(PyTypeObject* type, PyObject* name, PyObject* bound) {
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(type->tp_mro); ++i) {
    PyObject* own = cpython_type_dict(reinterpret_cast<PyTypeObject*>(PyTuple_GET_ITEM(type->tp_mro, i)));
    PyObject* found = own ? PyDict_GetItemWithError(own, name) : nullptr;
    if (found && Py_IS_TYPE(found, &PyClassMethodDescr_Type) &&
        reinterpret_cast<PyMethodDescrObject*>(found)->d_method->ml_meth == PyCFunction_GET_FUNCTION(bound))
      return found;
  }
  return nullptr;
}

// A C class method (dict.fromkeys), or a method of the metaclass bound to a class (type.__instancecheck__).
Ref call_of_type(Capture& capture, const CallArgs& c, PyTypeObject* type) {
  Ref name = Ref::steal(PyObject_GetAttrString(c.callable, "__name__"));
  PyObject* found = name ? class_method_of(type, name.get(), c.callable) : nullptr;
  const CallableRow* row = found ? find_callable(found) : nullptr;
  if (row && !row->rule) return run_prepared(capture, c, row->flags);
  if (row) {
    Prepended all(reinterpret_cast<PyObject*>(type), c.args, c.nargs, c.kwnames);
    return row->rule(capture, {c.callable, all.values.data(), c.nargs + 1, c.kwnames});
  }
  if (is_pure_type(type)) return run_prepared(capture, c, kPure);
  return call_bound_c_method(capture, c.callable, c.args, c.nargs, c.kwnames);
}

// Methods of `object` that look into the instance behind the guards' back.
bool reads_instance(PyObject* descriptor) {
  PyObject* name = PyDescr_NAME(descriptor);
  for (const char* harmless : {"__init__", "__new__", "__eq__", "__ne__", "__init_subclass__", "__subclasshook__"})
    if (PyUnicode_CompareWithASCIIString(name, harmless) == 0) return false;
  return true;
}

Ref call_c(Capture& capture, const CallArgs& c) {
  if (const CallableRow* row = find_callable(c.callable)) {
    if (row->rule) return row->rule(capture, c);
    return run_prepared(capture, c, row->flags);
  }
  if (Ref result; call_on_array_numbers(capture, c, &result)) return result;
  const bool descriptor = Py_IS_TYPE(c.callable, &PyMethodDescr_Type) || Py_IS_TYPE(c.callable, &PyWrapperDescr_Type) ||
                          Py_IS_TYPE(c.callable, &PyClassMethodDescr_Type);
  if (torch_layer::is_tensor_function(c.callable)) return call_tensor_function(capture, c);
  if (descriptor) {
    PyTypeObject* of = PyDescr_TYPE(c.callable);
    if (of == &PyBaseObject_Type && c.nargs > 0 && capture.is_outside(c.args[0]) && reads_instance(c.callable))
      return break_here(capture, "unknown_callable", describe(c.callable) + " on an object from outside");
    if (is_hash_of(c.callable)) return hash_call(capture, c);
    if (is_pure_type(of)) return run_prepared(capture, c, kPure);
    if (is_container_type(of)) return run_prepared(capture, c, kShallow | kMutates);
    if (c.nargs > 0 && !capture.is_outside(c.args[0]) && is_known_fresh_type(of))
      return run_prepared(capture, c, kShallow);
  } else if (PyCFunction_Check(c.callable)) {
    PyObject* self = PyCFunction_GET_SELF(c.callable);
    if (self && !PyModule_Check(self) && !PyType_Check(self))
      return call_bound_c_method(capture, c.callable, c.args, c.nargs, c.kwnames);
    if (self && PyType_Check(self)) return call_of_type(capture, c, reinterpret_cast<PyTypeObject*>(self));
  } else if (Py_IS_TYPE(c.callable, &_PyMethodWrapper_Type)) {
    return call_bound_c_method(capture, c.callable, c.args, c.nargs, c.kwnames);
  }
  return break_here(capture, "unknown_callable", describe(c.callable));
}

}  // namespace

int know_function(Capture& capture, PyObject* function) {
  if (capture.fresh_functions.count(function)) return 0;
  if (!capture.known_functions.insert(function).second) return 0;
  capture.keep_alive.push_back(Ref::borrow(function));
  const bool trusted = torch_layer::is_trusted_function(function);
  const OriginId origin = capture.origin_of(function);
  // Of torch and the standard library nobody changes a function's parts, but one may be put in another's place.
  if (trusted && capture.is_outside(function)) capture.guards.add(origin, GuardKind::Is, function);
  return know_parts(capture, function, origin, !trusted);
}

Ref call(Capture& capture, PyObject* callable, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames) {
  nargs = PyVectorcall_NARGS(static_cast<size_t>(nargs));
  if (capture.pending) return Ref();
  if (PyMethod_Check(callable)) return call_method_object(capture, callable, args, nargs, kwnames);
  if (PyFunction_Check(callable)) return call_function(capture, callable, args, nargs, kwnames);
  if (PyType_Check(callable)) return call_type(capture, {callable, args, nargs, kwnames});
  if (PyObject* wrapped = capture.wrapped_function ? capture.wrapped_function(callable) : nullptr)
    return call(capture, wrapped, args, nargs, kwnames);
  if (Ref result; PyCFunction_Check(callable) && call_on_arrays(capture, {callable, args, nargs, kwnames}, &result))
    return result;
  if (PyCFunction_Check(callable) || Py_IS_TYPE(callable, &PyMethodDescr_Type) ||
      Py_IS_TYPE(callable, &PyWrapperDescr_Type) || Py_IS_TYPE(callable, &PyClassMethodDescr_Type) ||
      Py_IS_TYPE(callable, &_PyMethodWrapper_Type))
    return call_c(capture, {callable, args, nargs, kwnames});
  if (const CallableRow* row = find_callable(callable)) {
    CallArgs c{callable, args, nargs, kwnames};
    return row->rule ? row->rule(capture, c) : run_prepared(capture, c, row->flags);
  }
  Ref result;
  if (call_known_object(capture, {callable, args, nargs, kwnames}, &result)) return result;
  Ref method = special_method(capture, callable, "__call__");
  if (!method) {
    if (PyErr_Occurred()) return Ref();
    PyErr_Format(PyExc_TypeError, "'%.200s' object is not callable", Py_TYPE(callable)->tp_name);
    return Ref();
  }
  if (Py_IS_TYPE(method.get(), &_PyMethodWrapper_Type))
    return break_here(capture, "unknown_callable", describe(callable));
  return call(capture, method.get(), args, nargs, kwnames);
}

Ref call_ex(Capture& capture, PyObject* callable, PyObject* args_tuple, PyObject* kwargs) {
  std::vector<PyObject*> values;
  std::vector<Ref> hold;
  const Py_ssize_t nargs = PyTuple_GET_SIZE(args_tuple);
  for (Py_ssize_t i = 0; i < nargs; ++i) values.push_back(PyTuple_GET_ITEM(args_tuple, i));
  Ref names;
  if (kwargs && PyDict_GET_SIZE(kwargs) > 0) {
    names = Ref::steal(PyTuple_New(PyDict_GET_SIZE(kwargs)));
    if (!names) return names;
    PyObject *key, *value;
    Py_ssize_t position = 0, at = 0;
    while (PyDict_Next(kwargs, &position, &key, &value)) {
      if (!PyUnicode_Check(key)) {
        PyErr_SetString(PyExc_TypeError, "keywords must be strings");
        return Ref();
      }
      PyTuple_SET_ITEM(names.get(), at++, Py_NewRef(key));
      values.push_back(value);
      hold.push_back(Ref::borrow(value));
    }
  }
  return call(capture, callable, values.data(), nargs, names.get());
}

Ref call_known(Capture& capture, PyObject* callable, PyObject* a) { return call(capture, callable, &a, 1, nullptr); }

Ref call_known(Capture& capture, PyObject* callable, PyObject* a, PyObject* b) {
  PyObject* args[] = {a, b};
  return call(capture, callable, args, 2, nullptr);
}

std::string describe(PyObject* callable) {
  SavedError error;
  std::string text;
  for (const char* part : {"__module__", "__qualname__"}) {
    Ref value = Ref::steal(PyObject_GetAttrString(callable, part));
    const char* words = value && PyUnicode_Check(value.get()) ? PyUnicode_AsUTF8(value.get()) : nullptr;
    if (!words) PyErr_Clear();
    if (words) text += (text.empty() ? "" : ".") + std::string(words);
  }
  return text.empty() ? "an object of type " + std::string(Py_TYPE(callable)->tp_name) : text;
}

}  // namespace graphlift::capture
