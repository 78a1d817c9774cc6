// Owns: attribute rules of objects that are no ordinary instances: stand-ins, modules, types, functions, methods, super
// objects, partials. One row per kind.
// Must not: handle ordinary instances (attributes.cpp).
#pragma once

#include "capture/capture.h"

namespace graphlift::capture {

struct AttributeRule {
  const char* kind;
  bool (*matches)(PyObject* object);
  Ref (*get)(Capture& capture, PyObject* object, PyObject* name);
  int (*set)(Capture& capture, PyObject* object, PyObject* name, PyObject* value_or_null);
};

const AttributeRule* attribute_rule(PyObject* object);  // null: an ordinary instance

// C getters of outside objects that are known: by (type, name).
Ref known_getset(Capture& capture, PyObject* descriptor, PyObject* object, PyObject* name);
// Descriptors of C types without a rule of their own.
Ref known_descriptor_get(Capture& capture, PyObject* descriptor, PyObject* object, PyTypeObject* type, PyObject* name);
// AttributeError's name and obj fields, which CPython uses for its suggestions.
void attach_attribute_error_context(PyObject* object, PyObject* name);
PyObject* cpython_type_dict(PyTypeObject* type);  // borrowed

}  // namespace graphlift::capture
