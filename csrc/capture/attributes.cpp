// Owns: see attributes.h; instances, through the generic protocol.
#include "capture/attributes.h"

#include <structmember.h>

#include "capture/attribute_kinds.h"
#include "capture/calls.h"
#include "capture/containers.h"
#include "capture/deferred.h"
#include "capture/dynamo_calls.h"
#include "capture/handled.h"
#include "capture/items.h"

namespace graphlift::capture {

using guards::OriginId;
using guards::OriginKind;

namespace {

Ref intern(const char* text) { return Ref::steal(PyUnicode_InternFromString(text)); }

PyObject* lookup(Capture& capture, PyTypeObject* type, const char* name) {
  Ref key = intern(name);
  return key ? capture.type_lookup(type, key.get()) : nullptr;
}

// The class that gives `value` for the name: `type`, or for what super() found, the base that has it.
PyTypeObject* owner_of(PyTypeObject* type, PyObject* name, PyObject* value) {
  if (_PyType_Lookup(type, name) == value) return type;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(type->tp_mro); ++i) {
    auto* base = reinterpret_cast<PyTypeObject*>(PyTuple_GET_ITEM(type->tp_mro, i));
    PyObject* own = cpython_type_dict(base);
    if (own && PyDict_GetItemWithError(own, name) == value) return base;
  }
  return type;
}

// A value found on a type: what capture sees of it.
Ref admit_type_value(Capture& capture, PyTypeObject* type, PyObject* name, PyObject* value) {
  if (is_value_constant(value) || is_identity_constant(value)) return Ref::borrow(value);
  if (PyFunction_Check(value) && capture.is_outside(value)) return Ref::borrow(value);  // the lookup is guarded
  if (!(type->tp_flags & Py_TPFLAGS_HEAPTYPE) || capture.fresh_types.count(reinterpret_cast<PyObject*>(type)))
    return Ref::borrow(value);
  PyTypeObject* owner = owner_of(type, name, value);
  const OriginId of_type = capture.origins().root(OriginKind::Constant, 0, reinterpret_cast<PyObject*>(owner));
  return capture.admit(value, capture.origins().child(of_type, OriginKind::TypeAttr, name));
}

Ref property_get(Capture& capture, PyObject* property, PyObject* object) {
  Ref getter = Ref::steal(PyObject_GetAttrString(property, "fget"));
  if (!getter) return getter;
  if (getter.get() == Py_None) {
    Ref raised = Ref::steal(Py_TYPE(property)->tp_descr_get(property, object, nullptr));
    return Ref();
  }
  return call_known(capture, getter.get(), object);
}

// A number in a C struct, such as complex.real, has no origin of its own.
bool holds_object(PyObject* member_descriptor) {
  const int type = reinterpret_cast<PyMemberDescrObject*>(member_descriptor)->d_member->type;
  return type == T_OBJECT || type == T_OBJECT_EX;
}

Ref slot_get(Capture& capture, PyObject* descriptor, PyObject* object) {
  Outside* outside = capture.objects.find(object);
  if (!outside || (!holds_object(descriptor) && fix_value(capture, object)))
    return Ref::steal(Py_TYPE(descriptor)->tp_descr_get(descriptor, object, nullptr));
  if (!holds_object(descriptor)) return break_here(capture, "unsupported_attribute", describe(descriptor));
  bool written = false;
  Ref value = field_get(capture, outside, descriptor, &written);
  if (!written) {
    const PyMemberDef* member = reinterpret_cast<PyMemberDescrObject*>(descriptor)->d_member;
    if (member->type != T_OBJECT && member->type != T_OBJECT_EX)  // a number or a text in C: no guard finds it again
      return break_here(capture, "unsupported_attribute", describe(descriptor));
    value = Ref::steal(Py_TYPE(descriptor)->tp_descr_get(descriptor, object, nullptr));
    const OriginId origin = capture.origins().child(outside->origin, OriginKind::Slot, descriptor);
    if (!value) {
      capture.guards.add(origin, guards::GuardKind::Missing);
      return value;
    }
    return capture.admit(value.get(), origin);
  }
  if (!value) PyErr_SetObject(PyExc_AttributeError, PyTuple_GET_ITEM(Py_TYPE(object)->tp_mro, 0));
  return value;
}

Ref getset_get(Capture& capture, PyObject* descriptor, PyObject* object, PyObject* name) {
  if (PyUnicode_CompareWithASCIIString(name, "__dict__") == 0) {
    PyObject* dict = instance_dict(capture, object);
    if (dict) return Ref::borrow(dict);
  }
  if (PyUnicode_CompareWithASCIIString(name, "__class__") == 0)
    return Ref::borrow(reinterpret_cast<PyObject*>(Py_TYPE(object)));
  if (!capture.is_outside(object)) return Ref::steal(Py_TYPE(descriptor)->tp_descr_get(descriptor, object, nullptr));
  return known_getset(capture, descriptor, object, name);
}

// The descriptor's __get__, by kind. `type_level`: the attribute is read off the class itself.
Ref descriptor_get(Capture& capture, PyObject* descriptor, PyObject* object, PyTypeObject* type, PyObject* name,
                   Ref* method_self) {
  if (PyFunction_Check(descriptor)) {
    if (!admit_type_value(capture, type, name, descriptor)) return Ref();
    if (know_function(capture, descriptor) < 0) return Ref();
    if (!object) return Ref::borrow(descriptor);
    if (method_self) {
      *method_self = Ref::borrow(object);
      return Ref::borrow(descriptor);
    }
    return Ref::steal(PyMethod_New(descriptor, object));
  }
  PyTypeObject* kind = Py_TYPE(descriptor);
  if (kind == &PyClassMethod_Type || kind == &PyStaticMethod_Type) {
    Ref inner = Ref::steal(PyObject_GetAttrString(descriptor, "__func__"));
    if (!inner || (PyFunction_Check(inner.get()) && know_function(capture, inner.get()) < 0)) return Ref();
    if (kind == &PyStaticMethod_Type) return inner;
    return Ref::steal(PyMethod_New(inner.get(), reinterpret_cast<PyObject*>(type)));
  }
  if (PyType_IsSubtype(kind, &PyProperty_Type))
    return object ? property_get(capture, descriptor, object) : Ref::borrow(descriptor);
  if (kind == &PyMemberDescr_Type && object) return slot_get(capture, descriptor, object);
  if (kind == &PyGetSetDescr_Type && object) return getset_get(capture, descriptor, object, name);
  if (kind == &PyMethodDescr_Type || kind == &PyWrapperDescr_Type || kind == &PyClassMethodDescr_Type ||
      kind == &PyMemberDescr_Type || kind == &PyGetSetDescr_Type)
    return Ref::steal(kind->tp_descr_get(descriptor, object, reinterpret_cast<PyObject*>(type)));
  Ref get = special_method(capture, descriptor, "__get__");
  if (get && (PyMethod_Check(get.get()) || PyFunction_Check(get.get()))) {
    PyObject* args[] = {object ? object : Py_None, reinterpret_cast<PyObject*>(type)};
    return call(capture, get.get(), args, 2, nullptr);
  }
  if (PyErr_Occurred()) return Ref();
  return known_descriptor_get(capture, descriptor, object, type, name);
}

bool has_set(PyObject* descriptor) { return Py_TYPE(descriptor)->tp_descr_set != nullptr; }
bool has_get(PyObject* descriptor) { return Py_TYPE(descriptor)->tp_descr_get != nullptr; }

void raise_no_attribute(PyObject* object, PyObject* name) {
  PyErr_Format(PyExc_AttributeError, "'%.100s' object has no attribute '%U'", Py_TYPE(object)->tp_name, name);
  attach_attribute_error_context(object, name);
}

// `__getattribute__` of Python code, or null when the class uses object's.
PyObject* own_getattribute(Capture& capture, PyTypeObject* type) {
  if (type->tp_getattro == PyObject_GenericGetAttr || !(type->tp_flags & Py_TPFLAGS_HEAPTYPE)) return nullptr;
  PyObject* found = lookup(capture, type, "__getattribute__");
  return found && PyFunction_Check(found) ? found : nullptr;
}

}  // namespace

Ref call_descriptor_get(Capture& capture, PyObject* descriptor, PyObject* object, PyTypeObject* type, PyObject* name) {
  if (!has_get(descriptor)) return admit_type_value(capture, type, name, descriptor);
  return descriptor_get(capture, descriptor, object, type, name, nullptr);
}

Ref generic_get_attr(Capture& capture, PyObject* object, PyObject* name, Ref* method_self) {
  PyTypeObject* type = Py_TYPE(object);
  PyObject* descriptor = capture.type_lookup(type, name);
  Ref hold = Ref::borrow(descriptor);
  if (descriptor && has_set(descriptor)) return descriptor_get(capture, descriptor, object, type, name, method_self);
  if (PyObject* dict = instance_dict(capture, object)) {
    Ref value = dict_get(capture, dict, name);
    if (value || PyErr_Occurred()) return value;
  }
  if (descriptor && has_get(descriptor)) return descriptor_get(capture, descriptor, object, type, name, method_self);
  if (descriptor) return admit_type_value(capture, type, name, descriptor);
  raise_no_attribute(object, name);
  return Ref();
}

namespace {

Ref instance_get_attr(Capture& capture, PyObject* object, PyObject* name, Ref* method_self) {
  PyTypeObject* type = Py_TYPE(object);
  if (PyObject* own = own_getattribute(capture, type)) {
    PyObject* args[] = {object, name};
    if (know_function(capture, own) < 0) return Ref();
    Ref result = call(capture, own, args, 2, nullptr);
    if (result || !PyErr_ExceptionMatches(PyExc_AttributeError)) return result;
  } else {
    Ref result = generic_get_attr(capture, object, name, method_self);
    if (result || capture.pending || !PyErr_ExceptionMatches(PyExc_AttributeError)) return result;
  }
  Ref error_type, error;
  {
    PyObject *t, *v, *tb;
    PyErr_Fetch(&t, &v, &tb);
    PyObject* hook = lookup(capture, type, "__getattr__");
    if (!hook) {
      PyErr_Restore(t, v, tb);
      return Ref();
    }
    Py_XDECREF(t);
    Py_XDECREF(v);
    Py_XDECREF(tb);
    PyObject* args[] = {object, name};
    if (PyFunction_Check(hook) && know_function(capture, hook) < 0) return Ref();
    return call(capture, hook, args, 2, nullptr);
  }
}

}  // namespace

Ref get_method(Capture& capture, PyObject* object, PyObject* name, Ref* self) {
  if (torch_layer::is_sym_scalar(object)) {
    PyTypeObject* type = torch_layer::is_graph_float(object) ? &PyFloat_Type : &PyLong_Type;
    if (_PyType_Lookup(type, name)) {  // a symbol's class has other attributes than the number's
      Ref number = capture.concrete(object);
      return number ? get_method(capture, number.get(), name, self) : number;
    }
    if (!in_torch(capture)) {  // torch's own methods of symbols read names of theirs
      PyErr_Format(PyExc_AttributeError, "'%.50s' object has no attribute '%U'", type->tp_name, name);
      return Ref();
    }
  }
  if (const AttributeRule* rule = attribute_rule(object)) return rule->get(capture, object, name);
  if (PyExceptionInstance_Check(object) && PyUnicode_CompareWithASCIIString(name, "__context__") == 0 &&
      !guard_context(capture, object))
    return break_here(capture, "unsupported_attribute", "__context__");
  // What a context variable was before the region is known to the token alone.
  if (PyContextToken_CheckExact(object) && PyUnicode_CompareWithASCIIString(name, "old_value") == 0)
    return break_here(capture, "unsupported_attribute", "Token.old_value");
  if (!(Py_TYPE(object)->tp_flags & Py_TPFLAGS_HEAPTYPE) && !capture.is_outside(object))
    return Ref::steal(PyObject_GetAttr(object, name));
  return instance_get_attr(capture, object, name, self);
}

Ref get_attr(Capture& capture, PyObject* object, PyObject* name) { return get_method(capture, object, name, nullptr); }

Ref get_super_attr(Capture& capture, PyTypeObject* start, PyTypeObject* type, PyObject* self, PyObject* name) {
  PyObject* mro = type->tp_mro;
  const Py_ssize_t count = PyTuple_GET_SIZE(mro);
  Py_ssize_t i = 0;
  while (i < count && PyTuple_GET_ITEM(mro, i) != reinterpret_cast<PyObject*>(start)) ++i;
  for (++i; i < count; ++i) {
    auto* base = reinterpret_cast<PyTypeObject*>(PyTuple_GET_ITEM(mro, i));
    PyObject* own = cpython_type_dict(base);
    PyObject* found = own ? PyDict_GetItemWithError(own, name) : nullptr;
    if (!found) continue;
    // What the base gives for the name is guarded; a class put between them changes the base list, hence the type's own
    // lookup.
    capture.type_lookup(base, name);
    capture.type_lookup(type, name);
    const bool of_class = self == reinterpret_cast<PyObject*>(type);
    if (!has_get(found)) return admit_type_value(capture, base, name, found);
    return descriptor_get(capture, found, of_class ? nullptr : self, type, name, nullptr);
  }
  PyErr_Format(PyExc_AttributeError, "'super' object has no attribute '%U'", name);
  return Ref();
}

Ref special_method(Capture& capture, PyObject* object, const char* name) {
  PyTypeObject* type = Py_TYPE(object);
  Ref key = intern(name);
  PyObject* found = key ? capture.type_lookup(type, key.get()) : nullptr;
  if (!found) return Ref();
  if (!has_get(found)) return Ref::borrow(found);
  return descriptor_get(capture, found, object, type, key.get(), nullptr);
}

int generic_set_attr(Capture& capture, PyObject* object, PyObject* name, PyObject* value) {
  PyTypeObject* type = Py_TYPE(object);
  PyObject* descriptor = capture.type_lookup(type, name);
  Ref hold = Ref::borrow(descriptor);
  Outside* outside = capture.objects.find(object);
  if (descriptor && has_set(descriptor)) {
    PyTypeObject* kind = Py_TYPE(descriptor);
    if (PyType_IsSubtype(kind, &PyProperty_Type)) {
      Ref setter = Ref::steal(PyObject_GetAttrString(descriptor, value ? "fset" : "fdel"));
      if (!setter) return -1;
      if (setter.get() == Py_None) return kind->tp_descr_set(descriptor, object, value);  // raises, changes nothing
      Ref done = value ? call_known(capture, setter.get(), object, value) : call_known(capture, setter.get(), object);
      return done ? 0 : -1;
    }
    if (!outside) return kind->tp_descr_set(descriptor, object, value);
    if (kind == &PyMemberDescr_Type) {
      field_set(capture, outside, descriptor, value);
      return 0;
    }
    const char* special = value ? "__set__" : "__delete__";
    Ref set = special_method(capture, descriptor, special);
    if (set && PyMethod_Check(set.get())) {
      Ref done = value ? call_known(capture, set.get(), object, value) : call_known(capture, set.get(), object);
      return done ? 0 : -1;
    }
    if (PyErr_Occurred()) return -1;
    return break_status(capture, "unsupported_store", std::string(type->tp_name) + "." + PyUnicode_AsUTF8(name));
  }
  PyObject* dict = instance_dict(capture, object);
  if (!dict) return PyObject_GenericSetAttr(object, name, value);  // raises: nowhere to store
  if (outside || !value) {
    const int status = dict_set(capture, dict, name, value);
    if (status < 0 && !capture.pending && !value && PyErr_ExceptionMatches(PyExc_KeyError)) {
      PyErr_Clear();
      raise_no_attribute(object, name);
    }
    return status;
  }
  return PyObject_GenericSetAttr(object, name, value);
}

int set_attr(Capture& capture, PyObject* object, PyObject* name, PyObject* value) {
  if (steers_deferred_calls(capture, object, name))
    return break_status(capture, "unsupported_store",
                        std::string(Py_TYPE(object)->tp_name) + "." + PyUnicode_AsUTF8(name));
  if (const AttributeRule* rule = attribute_rule(object)) return rule->set(capture, object, name, value);
  PyTypeObject* type = Py_TYPE(object);
  if (type->tp_setattro != PyObject_GenericSetAttr && (type->tp_flags & Py_TPFLAGS_HEAPTYPE)) {
    PyObject* own = lookup(capture, type, value ? "__setattr__" : "__delattr__");
    if (own && PyFunction_Check(own)) {
      if (know_function(capture, own) < 0) return -1;
      PyObject* args[] = {object, name, value};
      return call(capture, own, args, value ? 3 : 2, nullptr) ? 0 : -1;
    }
  } else if (type->tp_setattro != PyObject_GenericSetAttr && capture.is_outside(object)) {
    return break_status(capture, "unsupported_store", std::string(type->tp_name) + "." + PyUnicode_AsUTF8(name));
  }
  return generic_set_attr(capture, object, name, value);
}

}  // namespace graphlift::capture
