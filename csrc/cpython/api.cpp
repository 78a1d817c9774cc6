// Owns: what api.h says.
// clang-format off: internal.h has to come first
#include "cpython/internal.h"

#include "cpython/api.h"

#include <internal/pycore_dict.h>
#include <internal/pycore_object.h>
#if PY_VERSION_HEX >= 0x030d0000
#include <internal/pycore_unicodeobject.h>
#endif

// clang-format on

#undef _PyObject_LookupSpecial

namespace graphlift::cpython {

bool get_method(PyObject* object, PyObject* name, Ref* method) {
  PyObject* found = nullptr;
  const bool unbound = _PyObject_GetMethod(object, name, &found) != 0;
  *method = Ref::steal(found);
  return unbound && found;
}

Ref lookup_special(PyObject* object, PyObject* name) { return Ref::steal(_PyObject_LookupSpecial(object, name)); }

Ref optional_attribute(PyObject* object, PyObject* name) {
  PyObject* found = nullptr;
#if PY_VERSION_HEX >= 0x030d0000
  PyObject_GetOptionalAttr(object, name, &found);
#else
  _PyObject_LookupAttr(object, name, &found);
#endif
  return Ref::steal(found);
}

int merge_distinct(PyObject* dict, PyObject* mapping) { return _PyDict_MergeEx(dict, mapping, 2); }

Ref function_text(PyObject* callable) { return Ref::steal(_PyObject_FunctionStr(callable)); }

Ref join(PyObject* const* strings, Py_ssize_t count) {
  static PyObject* const empty = PyUnicode_FromString("");
  return Ref::steal(_PyUnicode_JoinArray(empty, strings, count));
}

bool is_initializing(PyObject* spec) {
  static PyObject* const name = PyUnicode_InternFromString("_initializing");
  if (!spec) return false;
  Ref value = optional_attribute(spec, name);
  const bool initializing = value && PyObject_IsTrue(value.get()) == 1;
  PyErr_Clear();
  return initializing;
}

}  // namespace graphlift::cpython
