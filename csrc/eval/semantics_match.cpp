// Owns: Semantics as CPython does it: `match`.
#include "cpython/api.h"
#include "cpython/version.h"
#include "eval/errors.h"
#include "eval/semantics.h"

namespace graphlift::eval {
namespace {

// Collects the attributes of one class pattern. A missing attribute ends the match: missing(), without an exception.
class ClassMatch {
 public:
  ClassMatch(PyObject* subject, PyObject* type)
      : subject_(subject),
        type_(reinterpret_cast<PyTypeObject*>(type)),
        seen_(Ref::steal(PySet_New(nullptr))),
        values_(Ref::steal(PyList_New(0))) {}

  bool positional(int count) {
    if (count == 0) return true;
    Ref names = match_args();
    if (!names) return false;
    const bool whole = !has_match_args_ && PyType_HasFeature(type_, _Py_TPFLAGS_MATCH_SELF);
    const Py_ssize_t allowed = whole ? 1 : PyTuple_GET_SIZE(names.get());
    if (allowed < count) {
      PyErr_Format(PyExc_TypeError, "%s() accepts %d positional sub-pattern%s (%d given)", type_->tp_name,
                   static_cast<int>(allowed), allowed == 1 ? "" : "s", count);
      return false;
    }
    if (whole) return PyList_Append(values_.get(), subject_) == 0;
    for (int i = 0; i < count; ++i) {
      PyObject* name = PyTuple_GET_ITEM(names.get(), i);
      if (!PyUnicode_CheckExact(name)) {
        PyErr_Format(PyExc_TypeError, "__match_args__ elements must be strings (got %s)", Py_TYPE(name)->tp_name);
        return false;
      }
      if (!attribute(name)) return false;
    }
    return true;
  }

  bool attribute(PyObject* name) {
    const int seen = PySet_Contains(seen_.get(), name);
    if (seen < 0 || (!seen && PySet_Add(seen_.get(), name) < 0)) return false;
    if (seen) {
      PyErr_Format(PyExc_TypeError, "%s() got multiple sub-patterns for attribute %R", type_->tp_name, name);
      return false;
    }
    Ref value = cpython::optional_attribute(subject_, name);
    return value && PyList_Append(values_.get(), value.get()) == 0;
  }

  Ref values() const { return Ref::steal(PyList_AsTuple(values_.get())); }

 private:
  Ref match_args() {
    PyObject* type = reinterpret_cast<PyObject*>(type_);
    Ref names = cpython::optional_attribute(type, interned("__match_args__"));
    if (!names) return PyErr_Occurred() ? Ref() : Ref::steal(PyTuple_New(0));
    has_match_args_ = true;
    if (PyTuple_CheckExact(names.get())) return names;
    PyErr_Format(PyExc_TypeError, "%s.__match_args__ must be a tuple (got %s)", type_->tp_name,
                 Py_TYPE(names.get())->tp_name);
    return Ref();
  }

  PyObject* subject_;
  PyTypeObject* type_;
  Ref seen_, values_;
  bool has_match_args_ = false;
};

Ref none_unless_error() { return PyErr_Occurred() ? Ref() : Ref::borrow(Py_None); }

}  // namespace

Ref Semantics::match_class(PyObject* subject, PyObject* type, int nargs, PyObject* names) {
  if (!PyType_Check(type)) {
    PyErr_SetString(PyExc_TypeError, cpython::kVersion >= 312 ? "called match pattern must be a class"
                                                              : "called match pattern must be a type");
    return Ref();
  }
  const int is_instance = PyObject_IsInstance(subject, type);
  if (is_instance <= 0) return none_unless_error();
  ClassMatch match(subject, type);
  if (!match.positional(nargs)) return none_unless_error();
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(names); ++i) {
    if (!match.attribute(PyTuple_GET_ITEM(names, i))) return none_unless_error();
  }
  return match.values();
}

Ref Semantics::match_keys(PyObject* subject, PyObject* keys) {
  const Py_ssize_t count = PyTuple_GET_SIZE(keys);
  Ref seen = Ref::steal(PySet_New(nullptr));
  Ref get = count ? Ref::steal(PyObject_GetAttr(subject, interned("get"))) : Ref();
  Ref missing = Ref::steal(PyObject_CallNoArgs(reinterpret_cast<PyObject*>(&PyBaseObject_Type)));
  Ref values = Ref::steal(PyTuple_New(count));
  if (!seen || (count && !get) || !missing || !values) return Ref();
  for (Py_ssize_t i = 0; i < count; ++i) {
    PyObject* key = PyTuple_GET_ITEM(keys, i);
    const int known = PySet_Contains(seen.get(), key);
    if (known < 0 || (!known && PySet_Add(seen.get(), key) < 0)) return Ref();
    if (known) {
      PyErr_Format(PyExc_ValueError, "mapping pattern checks duplicate key (%R)", key);
      return Ref();
    }
    PyObject* args[] = {key, missing.get()};
    Ref value = Ref::steal(PyObject_Vectorcall(get.get(), args, 2, nullptr));
    if (!value) return Ref();
    if (value == missing) return Ref::borrow(Py_None);
    PyTuple_SET_ITEM(values.get(), i, value.release());
  }
  return values;
}

int Semantics::match_is(PyObject* subject, bool mapping) {
  return (Py_TYPE(subject)->tp_flags & (mapping ? Py_TPFLAGS_MAPPING : Py_TPFLAGS_SEQUENCE)) != 0;
}

}  // namespace graphlift::eval
