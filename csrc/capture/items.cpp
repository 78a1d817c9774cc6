// Owns: see items.h; items, iteration. Operators are in operators.cpp.
#include "capture/items.h"

#include "capture/arrays.h"
#include "capture/attributes.h"
#include "capture/c_calls.h"
#include "capture/c_proxies.h"
#include "capture/c_reads.h"
#include "capture/callables.h"
#include "capture/calls.h"
#include "capture/computed_arrays.h"
#include "capture/containers.h"
#include "capture/flex_attention.h"
#include "capture/set_order.h"
#include "capture/tensor_attributes.h"

namespace graphlift::capture {

using guards::GuardKind;

namespace {

// The Python-level special method of an instance of a Python class; null without error when C implements it.
Ref python_special(Capture& capture, PyObject* object, const char* name) {
  if (!is_python_class(Py_TYPE(object))) return Ref();
  Ref method = special_method(capture, object, name);
  if (method && !PyMethod_Check(method.get()) && !PyFunction_Check(method.get())) return Ref();
  return method;
}

// What C code finds out of a key of an object.
Look look_of_key(PyObject* object) { return PyDict_Check(object) ? Look::Compares : Look::Reads; }

std::string type_name(PyObject* object) { return Py_TYPE(object)->tp_name; }

// Index of a plain int key into a list or tuple without a shadow; false: another kind of access.
bool direct_index(Capture& capture, Outside* outside, PyObject* key, Py_ssize_t* index) {
  if (outside->shadow || outside->tail || !PyLong_CheckExact(key)) return false;
  const Kind kind = container_kind(outside->object.get());
  if (kind != Kind::List && kind != Kind::Tuple) return false;
  const Py_ssize_t size =
      kind == Kind::List ? PyList_GET_SIZE(outside->object.get()) : PyTuple_GET_SIZE(outside->object.get());
  Py_ssize_t i = PyLong_AsSsize_t(key);
  if (i == -1 && PyErr_Occurred()) {
    PyErr_Clear();
    return false;
  }
  if (i < 0 || i >= size) capture.guards.add(outside->origin, GuardKind::Length, nullptr, size);
  if (i < 0) i += size;
  *index = i;
  return i >= 0 && i < size;
}

// A missing key of an outside defaultdict: its factory's value is stored, as defaultdict's own __missing__ does.
Ref default_item(Capture& capture, PyObject* dict, PyObject* key) {
  if (type_name(dict) != "collections.defaultdict")
    return break_here(capture, "unsupported_item", type_name(dict) + " with a missing key");
  Ref name = Ref::steal(PyUnicode_InternFromString("default_factory"));
  Ref factory = name ? get_attr(capture, dict, name.get()) : Ref();
  if (!factory) return factory;
  if (factory.get() == Py_None) {
    PyErr_SetObject(PyExc_KeyError, key);
    return Ref();
  }
  Ref value = call(capture, factory.get(), nullptr, 0, nullptr);
  return value && dict_set(capture, dict, key, value.get()) == 0 ? value : Ref();
}

}  // namespace

Ref get_item(Capture& capture, PyObject* object, PyObject* key) {
  if (Ref method = python_special(capture, object, "__getitem__")) return call(capture, method.get(), &key, 1, nullptr);
  if (PyErr_Occurred()) return Ref();
  if (PyContext_CheckExact(object)) return context_item(capture, object, key);
  if (is_array(object)) return array_operator(capture, "getitem", {object, key});
  if (torch_layer::is_stand_in(object)) {
    Ref item = index_by_places(capture, object, key);
    if (item || PyErr_Occurred()) return item;
  }
  Outside* outside = capture.objects.find(object);
  Ref plain_key = torch_layer::is_stand_in(object) ? for_c_code(capture, key) : for_plain_c_code(capture, key);
  if (!plain_key || !look_at(capture, plain_key.get(), look_of_key(object))) return Ref();
  if (!outside) {
    if (capture.is_outside(key) && holds_outside_container(capture, plain_key.get()))
      return break_here(capture, "nested_outside", "an index");
    if (PyType_Check(object)) {
      Ref of_class =
          PyType_IsSubtype(Py_TYPE(object), &PyType_Type) ? python_special(capture, object, "__getitem__") : Ref();
      (void)of_class;
    }
    return from_c_code(capture, Ref::steal(PyObject_GetItem(object, plain_key.get())));
  }
  Py_ssize_t index = 0;
  if (direct_index(capture, outside, plain_key.get(), &index)) return sequence_item(capture, object, index);
  const Kind kind = container_kind(object);
  if (kind == Kind::None) return break_here(capture, "unsupported_item", type_name(object));
  if (kind == Kind::Dict || kind == Kind::OrderedDict) {
    Ref value = dict_get(capture, object, plain_key.get());
    if (value || PyErr_Occurred()) return value;
    if (Ref missing = PyDict_CheckExact(object) ? Ref() : special_method(capture, object, "__missing__")) {
      if (!PyMethod_Check(missing.get())) return default_item(capture, object, key);
      return call(capture, missing.get(), &key, 1, nullptr);
    }
    if (!PyErr_Occurred()) PyErr_SetObject(PyExc_KeyError, key);
    return Ref();
  }
  Ref shadow = for_c_code(capture, object);
  return shadow ? from_c_code(capture, Ref::steal(PyObject_GetItem(shadow.get(), plain_key.get()))) : shadow;
}

int set_item(Capture& capture, PyObject* object, PyObject* key, PyObject* value) {
  Ref method = python_special(capture, object, value ? "__setitem__" : "__delitem__");
  if (method) {
    PyObject* args[] = {key, value};
    return call(capture, method.get(), args, value ? 2 : 1, nullptr) ? 0 : -1;
  }
  if (PyErr_Occurred()) return -1;
  if (is_array(object)) return break_status(capture, "array_arithmetic", "an assignment to items");
  const bool tensor = torch_layer::is_stand_in(object);
  Ref plain_key = tensor ? for_c_code(capture, key) : for_plain_c_code(capture, key);
  if (!plain_key || !look_at(capture, plain_key.get(), look_of_key(object))) return -1;
  Outside* outside = capture.objects.find(object);
  if (tensor && value && !look_at(capture, value, Look::Reads)) return -1;
  if (!outside) {
    Ref stored = Ref::borrow(value);
    // A slice of a list takes the items of what is assigned; a tensor takes its elements.
    if (value && (tensor || PySlice_Check(key))) stored = for_c_code(capture, value);
    if (value && !stored) return -1;
    return value ? PyObject_SetItem(object, plain_key.get(), stored.get()) : PyObject_DelItem(object, plain_key.get());
  }
  const Kind kind = container_kind(object);
  if (kind == Kind::Dict || kind == Kind::OrderedDict) return dict_set(capture, object, plain_key.get(), value);
  if (kind != Kind::List && kind != Kind::Deque) return break_status(capture, "unsupported_item", type_name(object));
  Ref shadow = for_c_code(capture, object);
  Ref stored = value && PySlice_Check(key) ? for_c_code(capture, value) : Ref::borrow(value);
  if (!shadow || (value && !stored)) return -1;
  note_mutation(capture, object);
  capture.dropped = true;
  return value ? PyObject_SetItem(shadow.get(), plain_key.get(), stored.get())
               : PyObject_DelItem(shadow.get(), plain_key.get());
}

Ref length(Capture& capture, PyObject* object) {
  Outside* outside = capture.objects.find(object);
  if (Ref method = python_special(capture, object, "__len__")) return call(capture, method.get(), nullptr, 0, nullptr);
  if (PyErr_Occurred()) return Ref();
  if (is_array(object)) return array_length(capture, object);
  if (outside && container_kind(object) == Kind::None)
    return break_here(capture, "unsupported_item", type_name(object));
  const Kind kind = container_kind(object);
  if (outside && !outside->shadow && !outside->overlay && !outside->tail && kind <= Kind::FrozenSet) {
    const Py_ssize_t size = Py_IS_TYPE(object, &PyDictProxy_Type) ? -1 : PyObject_Size(object);
    if (size < 0) return Ref();
    capture.guards.add(outside->origin, GuardKind::Length, nullptr, size);
    return Ref::steal(PyLong_FromSsize_t(size));
  }
  if (torch_layer::is_stand_in(object)) return tensor_length(capture, object);
  Ref shadow = for_c_code(capture, object);
  if (!shadow) return shadow;
  const Py_ssize_t size = PyObject_Size(shadow.get());
  return size < 0 ? Ref() : Ref::steal(PyLong_FromSsize_t(size));
}

int contains(Capture& capture, PyObject* container, PyObject* item) {
  if (Ref method = python_special(capture, container, "__contains__")) {
    Ref result = call(capture, method.get(), &item, 1, nullptr);
    return result ? truth(capture, result.get()) : -1;
  }
  if (PyErr_Occurred()) return -1;
  Outside* outside = capture.objects.find(container);
  const Kind kind = container_kind(container);
  Ref plain = capture.concrete(item);
  if (!plain || !look_at(capture, plain.get(), Look::Compares)) return -1;
  if (outside && (kind == Kind::Dict || kind == Kind::OrderedDict)) {
    if (outside->shadow) return PySequence_Contains(outside->shadow.get(), plain.get());
    Ref value = dict_get(capture, container, plain.get());
    if (value) return 1;
    return PyErr_Occurred() ? -1 : 0;
  }
  if (outside && kind == Kind::None && !is_python_class(Py_TYPE(container)))
    return break_status(capture, "unsupported_item", type_name(container));
  Ref shadow = for_c_code(capture, container);
  if (!shadow || !for_c_code(capture, plain.get())) return -1;
  if (PyIter_Check(shadow.get())) shadow = element_proxy(capture, shadow.get(), true, Look::Compares);
  const bool known = PyDict_Check(shadow.get()) || PyAnySet_Check(shadow.get());  // each key was looked at
  if (!shadow || (!known && !look_at(capture, shadow.get(), Look::Compares))) return -1;
  return PySequence_Contains(shadow.get(), plain.get());
}

Ref iterate(Capture& capture, PyObject* iterable) {
  Outside* outside = capture.objects.find(iterable);
  if (Ref method = python_special(capture, iterable, "__iter__"))
    return call(capture, method.get(), nullptr, 0, nullptr);
  if (PyErr_Occurred()) return Ref();
  if (outside && PyIter_Check(iterable)) return Ref::borrow(iterable);  // its own iterator; next() decides
  if (outside && container_kind(iterable) == Kind::None && !is_python_class(Py_TYPE(iterable)))
    return break_here(capture, "unsupported_iteration", type_name(iterable));
  Ref shadow = for_c_code(capture, iterable);
  if (!shadow || !order_is_read(capture, shadow.get())) return Ref();
  return Ref::steal(PyObject_GetIter(shadow.get()));
}

Ref next(Capture& capture, PyObject* iterator) {
  Outside* outside = capture.objects.find(iterator);
  if (outside) {
    if (Ref method = python_special(capture, iterator, "__next__")) {
      Ref value = call(capture, method.get(), nullptr, 0, nullptr);
      if (!value && !capture.pending && PyErr_ExceptionMatches(PyExc_StopIteration)) PyErr_Clear();
      return value;
    }
    if (PyErr_Occurred()) return Ref();
    return break_here(capture, PyGen_Check(iterator) ? "inner_generator" : "loop_boundary");
  }
  iternextfunc step = Py_TYPE(iterator)->tp_iternext;
  if (!step) {
    PyErr_Format(PyExc_TypeError, "'%.200s' object is not an iterator", Py_TYPE(iterator)->tp_name);
    return Ref();
  }
  Ref value = Ref::steal(step(iterator));
  if (capture.pending) return Ref();
  if (!value && PyErr_Occurred() && PyErr_ExceptionMatches(PyExc_StopIteration)) PyErr_Clear();
  return from_c_code(capture, std::move(value));
}

}  // namespace graphlift::capture
