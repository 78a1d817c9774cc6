// Owns: see constant.h.
#include "guards/constant.h"

#include <cstring>
#include <functional>

#include "base/text.h"

namespace graphlift::guards {

namespace {

constexpr size_t kLongestWords = 80;

bool is_singleton(PyObject* object) {
  return object == Py_None || object == Py_Ellipsis || object == Py_NotImplemented || object == Py_True ||
         object == Py_False;
}

bool is_scalar(PyObject* object) {
  return is_singleton(object) || PyLong_CheckExact(object) || PyFloat_CheckExact(object) ||
         PyUnicode_CheckExact(object) || PyBytes_CheckExact(object) || PyComplex_CheckExact(object);
}

bool same_bits(double a, double b) { return std::memcmp(&a, &b, sizeof a) == 0; }

bool tuples_equal(PyObject* a, PyObject* b) {
  const Py_ssize_t size = PyTuple_GET_SIZE(a);
  if (PyTuple_GET_SIZE(b) != size) return false;
  for (Py_ssize_t i = 0; i < size; ++i)
    if (!constants_equal(PyTuple_GET_ITEM(a, i), PyTuple_GET_ITEM(b, i))) return false;
  return true;
}

std::string utf8(PyObject* text) {
  const char* words = text && PyUnicode_Check(text) ? PyUnicode_AsUTF8(text) : nullptr;
  if (!words) PyErr_Clear();
  return words ? words : "?";
}

std::string type_name(PyTypeObject* type) {
  if (!(type->tp_flags & Py_TPFLAGS_HEAPTYPE)) return type->tp_name;
  return utf8(reinterpret_cast<PyHeapTypeObject*>(type)->ht_qualname);
}

std::string shortened(std::string words) {
  if (words.size() <= kLongestWords) return words;
  words.resize(kLongestWords - 3);
  return words + "...";
}

std::string describe_other(PyObject* object) {
  if (PyType_Check(object)) return cat("class ", type_name(reinterpret_cast<PyTypeObject*>(object)));
  if (PyFunction_Check(object))
    return cat("function ", utf8(reinterpret_cast<PyFunctionObject*>(object)->func_qualname));
  if (PyCFunction_Check(object)) return cat("builtin ", reinterpret_cast<PyCFunctionObject*>(object)->m_ml->ml_name);
  if (PyModule_Check(object)) {
    const char* name = PyModule_GetName(object);
    if (!name) PyErr_Clear();
    return cat("module ", name ? name : "?");
  }
  if (PyCode_Check(object)) return cat("code of ", utf8(reinterpret_cast<PyCodeObject*>(object)->co_qualname));
  return cat("<", type_name(Py_TYPE(object)), " object>");
}

}  // namespace

bool is_guardable_constant(PyObject* object) {
  if (is_scalar(object)) return true;
  if (!PyTuple_CheckExact(object)) return false;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(object); ++i)
    if (!is_guardable_constant(PyTuple_GET_ITEM(object, i))) return false;
  return true;
}

bool constants_equal(PyObject* a, PyObject* b) {
  if (a == b) return true;
  PyTypeObject* type = Py_TYPE(a);
  if (type != Py_TYPE(b)) return false;
  if (type == &PyFloat_Type) return same_bits(PyFloat_AS_DOUBLE(a), PyFloat_AS_DOUBLE(b));
  if (type == &PyComplex_Type) {
    const Py_complex x = PyComplex_AsCComplex(a), y = PyComplex_AsCComplex(b);
    return same_bits(x.real, y.real) && same_bits(x.imag, y.imag);
  }
  if (type == &PyTuple_Type) return tuples_equal(a, b);
  if (type != &PyLong_Type && type != &PyUnicode_Type && type != &PyBytes_Type) return false;
  return PyObject_RichCompareBool(a, b, Py_EQ) == 1;
}

size_t constant_hash(PyObject* object) {
  if (PyTuple_CheckExact(object)) {
    size_t hash = 0x345678;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(object); ++i)
      hash = hash * 1000003 ^ constant_hash(PyTuple_GET_ITEM(object, i));
    return hash;
  }
  if (PyUnicode_CheckExact(object) || PyLong_CheckExact(object) || PyBytes_CheckExact(object))
    return static_cast<size_t>(PyObject_Hash(object));
  if (PyFloat_CheckExact(object)) return std::hash<double>()(PyFloat_AS_DOUBLE(object));
  if (PyComplex_CheckExact(object)) return 17;
  return std::hash<PyObject*>()(object);
}

std::string describe(PyObject* object) {
  if (!object) return "nothing";
  if (!is_guardable_constant(object)) return describe_other(object);
  return repr_text(object);
}

std::string repr_text(PyObject* object) {
  Ref words = Ref::steal(PyObject_Repr(object));
  if (!words) PyErr_Clear();
  return shortened(utf8(words.get()));
}

}  // namespace graphlift::guards
