// Owns: see attribute_kinds.h.
#include "capture/attribute_kinds.h"

#include "capture/arrays.h"
#include "capture/attributes.h"
#include "capture/calls.h"
#include "capture/containers.h"
#include "capture/tensor_attributes.h"
#include "cpython/instance.h"

namespace graphlift::capture {

using guards::GuardKind;
using guards::OriginId;
using guards::OriginKind;

namespace {

bool named(PyObject* name, const char* text) { return PyUnicode_CompareWithASCIIString(name, text) == 0; }

int refuse_store(Capture& capture, PyObject* object, PyObject* name, PyObject*) {
  return break_status(capture, "unsupported_store",
                      std::string(Py_TYPE(object)->tp_name) + "." + PyUnicode_AsUTF8(name));
}

// --- modules
// ----------------------------------------------------------------------------------------------------------
PyObject* module_dict(Capture& capture, PyObject* module) {
  PyObject* dict = PyModule_GetDict(module);
  capture.know(dict, capture.origins().root(OriginKind::Constant, 0, dict));
  return dict;
}

Ref module_get(Capture& capture, PyObject* module, PyObject* name) {
  PyObject* dict = module_dict(capture, module);
  if (named(name, "__dict__")) return Ref::borrow(dict);
  if (named(name, "__class__")) return Ref::borrow(reinterpret_cast<PyObject*>(Py_TYPE(module)));
  Ref value = dict_get(capture, dict, name);
  if (value || PyErr_Occurred()) return value;
  if (Py_TYPE(module) != &PyModule_Type) {  // a subclass of ModuleType: properties and __getattr__ of its class
    PyObject* found = capture.type_lookup(Py_TYPE(module), name);
    if (found) return generic_get_attr(capture, module, name, nullptr);
    Ref hook = special_method(capture, module, "__getattr__");
    if (hook) return call(capture, hook.get(), &name, 1, nullptr);
    if (PyErr_Occurred()) return Ref();
  }
  Ref hook_name = Ref::steal(PyUnicode_InternFromString("__getattr__"));
  Ref hook = dict_get(capture, dict, hook_name.get());
  if (hook) return call(capture, hook.get(), &name, 1, nullptr);
  if (PyErr_Occurred()) return Ref();
  return Ref::steal(PyObject_GetAttr(module, name));  // raises CPython's own words
}

int module_set(Capture& capture, PyObject* module, PyObject* name, PyObject* value) {
  return dict_set(capture, module_dict(capture, module), name, value);
}

// --- types
// ------------------------------------------------------------------------------------------------------------
constexpr const char* kTypeFields[] = {
    "__name__",       "__qualname__",      "__module__",        "__mro__",        "__bases__",
    "__doc__",        "__base__",          "__basicsize__",     "__flags__",      "__abstractmethods__",
    "__class__",      "__itemsize__",      "__weakrefoffset__", "__dictoffset__", "mro",
    "__subclasses__", "__text_signature__"};

Ref type_get(Capture& capture, PyObject* object, PyObject* name) {
  auto* type = reinterpret_cast<PyTypeObject*>(object);
  for (const char* field : kTypeFields)
    if (named(name, field)) return Ref::steal(PyObject_GetAttr(object, name));
  if (named(name, "__dict__")) {
    const bool fixed = capture.fresh_types.count(object) || !(type->tp_flags & Py_TPFLAGS_HEAPTYPE);
    return fixed ? Ref::steal(PyObject_GetAttr(object, name))
                 : break_here(capture, "unsupported_attribute", describe(object) + ".__dict__");
  }
  PyTypeObject* meta = Py_TYPE(object);
  PyObject* of_meta = capture.type_lookup(meta, name);
  if (of_meta && Py_TYPE(of_meta)->tp_descr_set && !PyType_IsSubtype(Py_TYPE(of_meta), &PyGetSetDescr_Type))
    return call_descriptor_get(capture, of_meta, object, meta, name);
  PyObject* found = capture.type_lookup(type, name);
  if (found) return call_descriptor_get(capture, found, nullptr, type, name);
  if (of_meta) return call_descriptor_get(capture, of_meta, object, meta, name);
  Ref hook = special_method(capture, object, "__getattr__");
  if (hook) return call(capture, hook.get(), &name, 1, nullptr);
  if (PyErr_Occurred()) return Ref();
  return Ref::steal(PyObject_GetAttr(object, name));
}

int type_set(Capture& capture, PyObject* object, PyObject* name, PyObject* value) {
  if (!capture.fresh_types.count(object)) return refuse_store(capture, object, name, value);
  return PyObject_SetAttr(object, name, value);
}

// --- functions and methods
// ----------------------------------------------------------------------------------------------
Ref function_get(Capture& capture, PyObject* function, PyObject* name) {
  Outside* outside = capture.objects.find(function);
  if (!outside) return Ref::steal(PyObject_GetAttr(function, name));
  if (know_function(capture, function) < 0) return Ref();
  if (named(name, "__code__") || named(name, "__name__") || named(name, "__qualname__") || named(name, "__module__") ||
      named(name, "__doc__") || named(name, "__defaults__") || named(name, "__class__"))
    return Ref::steal(PyObject_GetAttr(function, name));
  if (named(name, "__globals__") || named(name, "__builtins__")) return Ref::steal(PyObject_GetAttr(function, name));
  if (named(name, "__get__")) return Ref::steal(PyObject_GetAttr(function, name));
  PyObject* dict = reinterpret_cast<PyFunctionObject*>(function)->func_dict;
  const OriginId origin = capture.origins().child(outside->origin, OriginKind::FunctionDict);
  if (dict) capture.know(dict, origin);
  if (named(name, "__dict__")) {
    if (dict) return Ref::borrow(dict);
    capture.guards.add(origin, GuardKind::Missing);
    return Ref::steal(PyDict_New());
  }
  if (dict) {
    Ref value = dict_get(capture, dict, name);
    if (value || PyErr_Occurred()) return value;
  } else {
    capture.guards.add(origin, GuardKind::Missing);
  }
  if (named(name, "__wrapped__")) {
    PyErr_SetString(PyExc_AttributeError, "'function' object has no attribute '__wrapped__'");
    return Ref();
  }
  if (named(name, "__annotations__") || named(name, "__kwdefaults__") || named(name, "__closure__")) {
    capture.guards.add(outside->origin, GuardKind::Is, function);
    Ref part = Ref::steal(PyObject_GetAttr(function, name));
    if (part && !is_value_constant(part.get()))
      capture.know(part.get(), capture.origins().root(OriginKind::Constant, 0, part.get()));
    return part;
  }
  return Ref::steal(PyObject_GetAttr(function, name));
}

int function_set(Capture& capture, PyObject* function, PyObject* name, PyObject* value) {
  if (capture.is_outside(function)) return refuse_store(capture, function, name, value);
  return PyObject_SetAttr(function, name, value);
}

Ref method_get(Capture& capture, PyObject* method, PyObject* name) {
  if (Outside* outside = capture.objects.find(method)) {
    const bool self = named(name, "__self__");
    if (!self && !named(name, "__func__") && !named(name, "__doc__") && _PyType_Lookup(&PyMethod_Type, name))
      return Ref::steal(
          PyObject_GetAttr(method, name));  // bound to the method, whose parts are looked at when it is called
    if (self || named(name, "__func__"))
      return capture.admit(
          self ? PyMethod_GET_SELF(method) : PyMethod_GET_FUNCTION(method),
          capture.origins().child(outside->origin, self ? OriginKind::MethodSelf : OriginKind::MethodFunction));
    Ref function = capture.admit(PyMethod_GET_FUNCTION(method),
                                 capture.origins().child(outside->origin, OriginKind::MethodFunction));
    return function ? get_attr(capture, function.get(), name) : function;
  }
  if (named(name, "__self__") || named(name, "__func__") ||
      (!named(name, "__doc__") && _PyType_Lookup(&PyMethod_Type, name)))
    return Ref::steal(PyObject_GetAttr(method, name));
  return get_attr(capture, PyMethod_GET_FUNCTION(method), name);
}

bool is_super(PyObject* object) { return PyObject_TypeCheck(object, &PySuper_Type); }

Ref super_get(Capture& capture, PyObject* object, PyObject* name) {
  if (named(name, "__class__")) return Ref::steal(PyObject_GetAttr(object, name));
  if (capture.is_outside(object))
    return break_here(capture, "unsupported_attribute", std::string("super.") + PyUnicode_AsUTF8(name));
  Ref start = Ref::steal(PyObject_GetAttrString(object, "__thisclass__"));
  Ref type = start ? Ref::steal(PyObject_GetAttrString(object, "__self_class__")) : Ref();
  Ref self = type ? Ref::steal(PyObject_GetAttrString(object, "__self__")) : Ref();
  if (!self) return self;
  return get_super_attr(capture, reinterpret_cast<PyTypeObject*>(start.get()),
                        reinterpret_cast<PyTypeObject*>(type.get()), self.get(), name);
}

int generic_store(Capture& capture, PyObject* object, PyObject* name, PyObject* value) {
  if (capture.is_outside(object)) return refuse_store(capture, object, name, value);
  return PyObject_SetAttr(object, name, value);
}

// The root's local variables are raw until the program reads them.
Ref frame_get(Capture& capture, PyObject* frame, PyObject* name) {
  const int root_locals = named(name, "f_locals") ? capture.frames.front().local_count() : 0;
  for (int slot = 0; slot < root_locals; ++slot)
    if (!capture.admit_root_local(slot)) return Ref();
  return Ref::steal(PyObject_GetAttr(frame, name));
}

bool is_frame(PyObject* o) { return PyFrame_Check(o); }
bool is_module(PyObject* o) { return PyModule_Check(o); }
bool is_type(PyObject* o) { return PyType_Check(o); }
bool is_function(PyObject* o) { return PyFunction_Check(o); }
bool is_bound_method(PyObject* o) { return PyMethod_Check(o); }
bool is_c_function(PyObject* o) {
  return PyCFunction_Check(o) || Py_IS_TYPE(o, &PyMethodDescr_Type) || Py_IS_TYPE(o, &PyWrapperDescr_Type) ||
         Py_IS_TYPE(o, &_PyMethodWrapper_Type);
}
Ref c_function_get(Capture&, PyObject* object, PyObject* name) { return Ref::steal(PyObject_GetAttr(object, name)); }

constexpr AttributeRule kRules[] = {
    {"stand-in", torch_layer::is_stand_in, tensor_get_attr, tensor_set_attr},
    {"module", is_module, module_get, module_set},
    {"type", is_type, type_get, type_set},
    {"function", is_function, function_get, function_set},
    {"method", is_bound_method, method_get, generic_store},
    {"super", is_super, super_get, generic_store},
    {"C function", is_c_function, c_function_get, generic_store},
    {"frame", is_frame, frame_get, generic_store},
    {"kind of arrays", is_array_kind, kind_get_attr, generic_store},
    {"array", is_array, array_get_attr, generic_store},
};

}  // namespace

const AttributeRule* attribute_rule(PyObject* object) {
  for (const AttributeRule& rule : kRules)
    if (rule.matches(object)) return &rule;
  return nullptr;
}

Ref known_getset(Capture& capture, PyObject* descriptor, PyObject* object, PyObject* name) {
  const Kind kind = container_kind(object);
  if (kind != Kind::None) {
    Ref shadow = for_c_code(capture, object);
    if (!shadow) return shadow;
    return Ref::steal(Py_TYPE(descriptor)->tp_descr_get(descriptor, shadow.get(), nullptr));
  }
  return break_here(capture, "unsupported_attribute",
                    std::string(Py_TYPE(object)->tp_name) + "." + PyUnicode_AsUTF8(name));
}

Ref known_descriptor_get(Capture& capture, PyObject* descriptor, PyObject* object, PyTypeObject* type, PyObject* name) {
  // functools.partial and C callables that don't bind; classes used as attributes.
  if (PyType_Check(descriptor)) return Ref::borrow(descriptor);
  (void)type;
  const std::string_view type_name = Py_TYPE(descriptor)->tp_name;  // "_collections._tuplegetter" before CPython 3.12
  if (type_name.ends_with("collections._tuplegetter")) {            // a field of a namedtuple
    Ref seen = object ? for_c_code(capture, object) : Ref::borrow(descriptor);
    if (!seen || !object) return seen;
    return Ref::steal(Py_TYPE(descriptor)->tp_descr_get(descriptor, seen.get(), nullptr));
  }
  if (std::string(Py_TYPE(descriptor)->tp_name) == "functools._lru_cache_wrapper")  // binds as functions do
    return object ? Ref::steal(PyMethod_New(descriptor, object)) : Ref::borrow(descriptor);
  return break_here(capture, "unsupported_attribute",
                    std::string(PyUnicode_AsUTF8(name)) + " (a " + Py_TYPE(descriptor)->tp_name + ")");
}

void attach_attribute_error_context(PyObject* object, PyObject* name) {
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  PyErr_NormalizeException(&type, &value, &traceback);
  if (value && (PyObject_SetAttrString(value, "name", name) < 0 || PyObject_SetAttrString(value, "obj", object) < 0))
    PyErr_Clear();
  PyErr_Restore(type, value, traceback);
}

PyObject* cpython_type_dict(PyTypeObject* type) { return cpython::type_dict(type); }

}  // namespace graphlift::capture
