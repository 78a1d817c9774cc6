// Owns: Semantics as CPython does it: iteration, unpacking, filling containers, formatting.
#include "cpython/api.h"
#include "cpython/exception.h"
#include "eval/errors.h"
#include "eval/semantics.h"

namespace graphlift::eval {
namespace {

int too_few(bool star, int wanted, Py_ssize_t got) {
  PyErr_Format(PyExc_ValueError, "not enough values to unpack (expected %s%d, got %zd)", star ? "at least " : "",
               wanted, got);
  return -1;
}

// The values behind a starred target: all of the rest in a list, of which the last `after` are taken out again.
int unpack_rest(PyObject* iterator, int before, int after, Ref* out) {
  Ref list = Ref::steal(PySequence_List(iterator));
  if (!list) return -1;
  const Py_ssize_t size = PyList_GET_SIZE(list.get());
  if (size < after) return too_few(true, before + after, before + size);
  for (int i = 0; i < after; ++i) out[i + 1] = Ref::borrow(PyList_GET_ITEM(list.get(), size - after + i));
  if (PyList_SetSlice(list.get(), size - after, size, nullptr) < 0) return -1;
  out[0] = std::move(list);
  return 0;
}

// A failed merge of keyword arguments, in the words of a call.
void explain_merge(PyObject* callable, PyObject* mapping) {
  if (PyErr_ExceptionMatches(PyExc_AttributeError)) {
    PyErr_Clear();
    if (Ref text = cpython::function_text(callable)) {
      PyErr_Format(PyExc_TypeError, "%U argument after ** must be a mapping, not %.200s", text.get(),
                   Py_TYPE(mapping)->tp_name);
    }
    return;
  }
  if (!PyErr_ExceptionMatches(PyExc_KeyError)) return;
  Ref exception = cpython::take_exception();
  Ref args = Ref::steal(PyObject_GetAttrString(exception.get(), "args"));
  Ref text = args && PyTuple_GET_SIZE(args.get()) == 1 ? cpython::function_text(callable) : Ref();
  if (!text) {
    PyErr_Clear();
    cpython::restore_exception(std::move(exception));
    return;
  }
  PyErr_Format(PyExc_TypeError, "%U got multiple values for keyword argument '%S'", text.get(),
               PyTuple_GET_ITEM(args.get(), 0));
}

}  // namespace

Ref Semantics::iterate(PyObject* iterable) { return Ref::steal(PyObject_GetIter(iterable)); }

Ref Semantics::next(PyObject* iterator) {
  Ref value = Ref::steal(Py_TYPE(iterator)->tp_iternext(iterator));
  if (!value && PyErr_Occurred() && PyErr_ExceptionMatches(PyExc_StopIteration)) PyErr_Clear();
  return value;
}

int Semantics::send(PyObject* iterator, PyObject* value, Ref* result) {
  PyObject* out = nullptr;
  const PySendResult status = PyIter_Send(iterator, value, &out);
  *result = Ref::steal(out);
  return status == PYGEN_NEXT ? 1 : status == PYGEN_RETURN ? 0 : -1;
}

int Semantics::unpack(PyObject* iterable, int before, int after, bool star, Ref* out) {
  Ref iterator = Ref::steal(PyObject_GetIter(iterable));
  if (!iterator) {
    if (clear_not_iterable(iterable)) {
      PyErr_Format(PyExc_TypeError, "cannot unpack non-iterable %.200s object", Py_TYPE(iterable)->tp_name);
    }
    return -1;
  }
  for (int i = 0; i < before; ++i) {
    out[i] = Ref::steal(PyIter_Next(iterator.get()));
    if (out[i]) continue;
    return PyErr_Occurred() ? -1 : too_few(star, before + after, i);
  }
  if (star) return unpack_rest(iterator.get(), before, after, out + before);
  Ref extra = Ref::steal(PyIter_Next(iterator.get()));
  if (extra) PyErr_Format(PyExc_ValueError, "too many values to unpack (expected %d)", before);
  return PyErr_Occurred() ? -1 : 0;
}

int Semantics::list_append(PyObject* list, PyObject* value) { return PyList_Append(list, value); }
int Semantics::set_add(PyObject* set, PyObject* value) { return PySet_Add(set, value); }
int Semantics::map_add(PyObject* dict, PyObject* key, PyObject* value) { return PyDict_SetItem(dict, key, value); }
Ref Semantics::list_to_tuple(PyObject* list) { return Ref::steal(PyList_AsTuple(list)); }

int Semantics::list_extend(PyObject* list, PyObject* iterable) {
  PyObject* args[] = {list, iterable};
  if (Ref::steal(PyObject_VectorcallMethod(interned("extend"), args, 2, nullptr))) return 0;
  if (clear_not_iterable(iterable)) {
    PyErr_Format(PyExc_TypeError, "Value after * must be an iterable, not %.200s", Py_TYPE(iterable)->tp_name);
  }
  return -1;
}

int Semantics::set_update(PyObject* set, PyObject* iterable) {
  PyObject* args[] = {set, iterable};
  return Ref::steal(PyObject_VectorcallMethod(interned("update"), args, 2, nullptr)) ? 0 : -1;
}

int Semantics::dict_update(PyObject* dict, PyObject* mapping) {
  if (PyDict_Update(dict, mapping) == 0) return 0;
  if (PyErr_ExceptionMatches(PyExc_AttributeError)) {
    PyErr_Clear();
    PyErr_Format(PyExc_TypeError, "'%.200s' object is not a mapping", Py_TYPE(mapping)->tp_name);
  }
  return -1;
}

int Semantics::dict_merge(PyObject* dict, PyObject* mapping, PyObject* callable) {
  if (cpython::merge_distinct(dict, mapping) == 0) return 0;
  explain_merge(callable, mapping);
  return -1;
}

Ref Semantics::convert(PyObject* value, int conversion) {
  switch (conversion) {
    case 's':
      return Ref::steal(PyObject_Str(value));
    case 'r':
      return Ref::steal(PyObject_Repr(value));
    case 'a':
      return Ref::steal(PyObject_ASCII(value));
    default:
      return Ref::borrow(value);
  }
}

Ref Semantics::format(PyObject* value, int conversion, PyObject* spec_or_null) {
  Ref converted = convert(value, conversion);
  if (!converted || (!spec_or_null && PyUnicode_CheckExact(converted.get()))) return converted;
  return Ref::steal(PyObject_Format(converted.get(), spec_or_null));
}

}  // namespace graphlift::eval
