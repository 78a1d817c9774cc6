// Owns: which keys of dicts and items of sets a recipe may hash and compare: their hash runs no Python of the user's.
#include <Python.h>

#include "base/error.h"
#include "base/once.h"
#include "capture/recipe_parts.h"
#include "capture/snapshot_builder.h"
#include "cpython/imported.h"
#include "cpython/raw_dict.h"

namespace graphlift::capture {
namespace {

struct EnumParts {
  PyObject* metaclass;
  PyObject* hash;  // of a member: that of its name
};

const EnumParts& enum_parts() {
  static constinit Once<EnumParts> once;
  const EnumParts& parts = once.get([] {
    Ref metaclass = cpython::imported("enum", "EnumType"), hash = cpython::imported("enum", "Enum.__hash__");
    GL_CHECK(metaclass && hash, "the enum module has changed");
    return EnumParts{metaclass.release(), hash.release()};
  });
  return parts;
}

bool has_enum_hash(PyTypeObject* type) {
  static PyObject* name = PyUnicode_InternFromString("__hash__");
  return _PyType_Lookup(type, name) == enum_parts().hash;
}

bool is_safe_collection(PyObject* items, int depth);

bool is_safe(PyObject* key, int depth) {
  if (is_value_constant(key)) return true;
  if (PyTuple_Check(key) || PyFrozenSet_Check(key)) return is_safe_collection(key, depth + 1);
  if (PyWeakref_Check(key)) {
    PyObject* target = cpython::weakref_target(key);
    return target && is_safe(target, depth + 1);
  }
  PyTypeObject* type = Py_TYPE(key);
  // torch's own hash is the identity.
  if (torch_layer::is_tensor(key) || (is_enum_member(key) && has_enum_hash(type))) return true;
  if (type->tp_hash == PyBaseObject_Type.tp_hash) return true;
  PyTypeObject* base = c_base(type);
  return type->tp_hash == base->tp_hash && type->tp_richcompare == base->tp_richcompare;
}

bool is_safe_collection(PyObject* items, int depth) {
  if (depth > 20) return false;
  PyTypeObject* base = PyTuple_Check(items) ? &PyTuple_Type : &PyFrozenSet_Type;
  if (Py_TYPE(items)->tp_hash != base->tp_hash || Py_TYPE(items)->tp_richcompare != base->tp_richcompare) return false;
  if (PyTuple_Check(items)) {
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(items); ++i)
      if (!is_safe(PyTuple_GET_ITEM(items, i), depth)) return false;
    return true;
  }
  Py_ssize_t position = 0;
  PyObject* item;
  Py_hash_t hash;
  while (cpython::raw_set_next(items, &position, &item, &hash))
    if (!is_safe(item, depth)) return false;
  return true;
}

}  // namespace

bool is_safe_key(PyObject* key) { return is_safe(key, 0); }

bool is_enum_member(PyObject* object) {
  PyTypeObject* metaclass = Py_TYPE(Py_TYPE(object));
  return metaclass != &PyType_Type &&
         PyType_IsSubtype(metaclass, reinterpret_cast<PyTypeObject*>(enum_parts().metaclass));
}

}  // namespace graphlift::capture
