// Owns: what errors.h says.
#include "eval/errors.h"

#include <map>
#include <string>

#include "cpython/exception.h"

namespace graphlift::eval {

void name_error(const char* format, PyObject* name) {
  PyErr_Format(PyExc_NameError, format, name);
  Ref exception = cpython::take_exception();
  if (PyObject_SetAttrString(exception.get(), "name", name) < 0) PyErr_Clear();
  cpython::restore_exception(std::move(exception));
}

Ref mapping_get(PyObject* mapping, PyObject* key) {
  if (PyDict_CheckExact(mapping)) return Ref::borrow(PyDict_GetItemWithError(mapping, key));
  Ref value = Ref::steal(PyObject_GetItem(mapping, key));
  if (!value && PyErr_ExceptionMatches(PyExc_KeyError)) PyErr_Clear();
  return value;
}

bool clear_not_iterable(PyObject* object) {
  if (!PyErr_ExceptionMatches(PyExc_TypeError)) return false;
  if (Py_TYPE(object)->tp_iter || PySequence_Check(object)) return false;
  PyErr_Clear();
  return true;
}

PyObject* interned(const char* text) {
  static std::map<std::string, PyObject*>* const table = new std::map<std::string, PyObject*>;
  PyObject*& entry = (*table)[text];
  if (!entry) entry = PyUnicode_InternFromString(text);
  return entry;
}

}  // namespace graphlift::eval
