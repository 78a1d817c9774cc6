// Owns: see instance.h.
#include "cpython/instance.h"

namespace graphlift::cpython {

PyObject* instance_dict(PyObject* object) {
  PyTypeObject* type = Py_TYPE(object);
  if (PyType_Check(object) || PyModule_Check(object) || PyFunction_Check(object)) return nullptr;
#ifdef Py_TPFLAGS_MANAGED_DICT
  const bool has_dict = type->tp_dictoffset != 0 || (type->tp_flags & Py_TPFLAGS_MANAGED_DICT);
#else
  const bool has_dict = type->tp_dictoffset != 0;
#endif
  if (!has_dict) return nullptr;
  // PyObject_GenericGetDict materializes inline values and keeps the dict in the object: the reference it returns is a
  // second one.
  PyObject* dict = PyObject_GenericGetDict(object, nullptr);
  if (!dict) {
    PyErr_Clear();
    return nullptr;
  }
  Py_DECREF(dict);
  return dict;
}

PyObject* type_dict(PyTypeObject* type) {
#if PY_VERSION_HEX >= 0x030c0000
  // Static builtin types keep their dict in the interpreter from 3.12 on. The type keeps it alive.
  PyObject* dict = PyType_GetDict(type);
  Py_XDECREF(dict);
  return dict;
#else
  return type->tp_dict;
#endif
}

}  // namespace graphlift::cpython
