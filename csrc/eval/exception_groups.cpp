// Owns: what exception_groups.h says. Groups are split by their own methods, which subclasses may override.
#include "eval/exception_groups.h"

#include "cpython/api.h"
#include "eval/errors.h"

namespace graphlift::eval {
namespace {

bool is_group(PyObject* exception) {
  return PyObject_TypeCheck(exception, reinterpret_cast<PyTypeObject*>(PyExc_BaseExceptionGroup));
}

Ref call_method(Semantics& semantics, PyObject* object, const char* name, PyObject* argument) {
  Ref method = semantics.get_attr(object, interned(name));
  return method ? semantics.call(method.get(), &argument, 1, nullptr) : Ref();
}

Ref wrap(Semantics& semantics, const char* message, PyObject* exceptions) {
  Ref text = Ref::steal(PyUnicode_FromString(message));
  if (!text) return Ref();
  PyObject* args[] = {text.get(), exceptions};
  return semantics.call(PyExc_BaseExceptionGroup, args, 2, nullptr);
}

GroupMatch split(Semantics& semantics, PyObject* group, PyObject* type) {
  Ref pair = call_method(semantics, group, "split", type);
  if (!pair) return {};
  if (!PyTuple_CheckExact(pair.get())) {
    PyErr_Format(PyExc_TypeError, "%.200s.split must return a tuple, not %.200s", Py_TYPE(group)->tp_name,
                 Py_TYPE(pair.get())->tp_name);
    return {};
  }
  if (PyTuple_GET_SIZE(pair.get()) < 2) {
    PyErr_Format(PyExc_TypeError, "%.200s.split must return a 2-tuple, got tuple of size %zd", Py_TYPE(group)->tp_name,
                 PyTuple_GET_SIZE(pair.get()));
    return {};
  }
  return {Ref::borrow(PyTuple_GET_ITEM(pair.get(), 0)), Ref::borrow(PyTuple_GET_ITEM(pair.get(), 1))};
}

// The leaves of a tree of groups, by identity.
int collect_leaves(PyObject* exception, PyObject* ids) {
  if (!is_group(exception)) {
    Ref id = Ref::steal(PyLong_FromVoidPtr(exception));
    return id ? PySet_Add(ids, id.get()) : -1;
  }
  Ref members = Ref::steal(PyObject_GetAttrString(exception, "exceptions"));
  if (!members) return -1;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(members.get()); ++i) {
    if (collect_leaves(PyTuple_GET_ITEM(members.get(), i), ids) < 0) return -1;
  }
  return 0;
}

// group.derive(members), with the group's traceback, context, cause and notes.
Ref derive(Semantics& semantics, PyObject* group, PyObject* members) {
  Ref part = call_method(semantics, group, "derive", members);
  if (!part) return part;
  if (!is_group(part.get())) {
    PyErr_SetString(PyExc_TypeError, "derive must return an instance of BaseExceptionGroup");
    return Ref();
  }
  Ref traceback = Ref::steal(PyException_GetTraceback(group));
  if (traceback && PyException_SetTraceback(part.get(), traceback.get()) < 0) return Ref();
  PyException_SetContext(part.get(), PyException_GetContext(group));
  PyException_SetCause(part.get(), PyException_GetCause(group));
  Ref notes = cpython::optional_attribute(group, interned("__notes__"));
  if (!notes) return PyErr_Occurred() ? Ref() : std::move(part);
  if (!PySequence_Check(notes.get())) return part;
  Ref copy = Ref::steal(PySequence_List(notes.get()));
  if (!copy || PyObject_SetAttr(part.get(), interned("__notes__"), copy.get()) < 0) return Ref();
  return part;
}

// The group cut down to the leaves in `ids`; None when there are none.
Ref project(Semantics& semantics, PyObject* group, PyObject* ids) {
  Ref members = Ref::steal(PyObject_GetAttrString(group, "exceptions"));
  Ref kept = Ref::steal(PyList_New(0));
  if (!members || !kept) return Ref();
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(members.get()); ++i) {
    PyObject* member = PyTuple_GET_ITEM(members.get(), i);
    Ref part = Ref::borrow(Py_None);
    if (is_group(member)) {
      part = project(semantics, member, ids);
    } else {
      Ref id = Ref::steal(PyLong_FromVoidPtr(member));
      if (!id) return Ref();
      if (PySet_Contains(ids, id.get()) == 1) part = Ref::borrow(member);
    }
    if (!part || (part.get() != Py_None && PyList_Append(kept.get(), part.get()) < 0)) return Ref();
  }
  return PyList_GET_SIZE(kept.get()) ? derive(semantics, group, kept.get()) : Ref::borrow(Py_None);
}

// The original group cut down to the leaves of the exceptions in `kept`, a list.
Ref project_onto(Semantics& semantics, PyObject* original, PyObject* kept) {
  Ref ids = Ref::steal(PySet_New(nullptr));
  if (!ids) return Ref();
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(kept); ++i) {
    if (collect_leaves(PyList_GET_ITEM(kept, i), ids.get()) < 0) return Ref();
  }
  return project(semantics, original, ids.get());
}

// A part of the original group that a clause left or raised again unchanged keeps its notes, traceback, cause and
// context.
int same_metadata(PyObject* a, PyObject* b) {
  if (!is_group(a) || !is_group(b)) return 0;
  for (const char* name : {"__notes__", "__traceback__", "__cause__", "__context__"}) {
    Ref left = Ref::steal(PyObject_GetAttrString(a, name));
    if (!left) PyErr_Clear();
    Ref right = Ref::steal(PyObject_GetAttrString(b, name));
    if (!right) PyErr_Clear();
    if (!(left == right)) return 0;
  }
  return 1;
}

int partition(PyObject* original, PyObject* exceptions, PyObject* raised, PyObject* reraised) {
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(exceptions); ++i) {
    PyObject* exception = PyList_GET_ITEM(exceptions, i);
    if (exception == Py_None) continue;
    if (PyList_Append(same_metadata(exception, original) ? reraised : raised, exception) < 0) return -1;
  }
  return 0;
}

}  // namespace

GroupMatch match_group(Semantics& semantics, PyObject* exception, PyObject* type) {
  if (exception == Py_None) return {Ref::borrow(Py_None), Ref::borrow(Py_None)};
  const int whole = semantics.exception_matches(exception, type);
  if (whole < 0) return {};
  if (whole && is_group(exception)) return {Ref::borrow(exception), Ref::borrow(Py_None)};
  if (whole) {
    Ref one = Ref::steal(PyTuple_Pack(1, exception));
    return {one ? wrap(semantics, "", one.get()) : Ref(), Ref::borrow(Py_None)};
  }
  if (is_group(exception)) return split(semantics, exception, type);
  return {Ref::borrow(Py_None), Ref::borrow(exception)};
}

Ref combine_groups(Semantics& semantics, PyObject* original, PyObject* exceptions) {
  if (!is_group(original)) {  // a single exception, wrapped for the clause: at most one came out
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(exceptions); ++i) {
      PyObject* exception = PyList_GET_ITEM(exceptions, i);
      if (exception != Py_None) return Ref::borrow(exception);
    }
    return Ref::borrow(Py_None);
  }
  Ref raised = Ref::steal(PyList_New(0)), reraised = Ref::steal(PyList_New(0));
  if (!raised || !reraised || partition(original, exceptions, raised.get(), reraised.get()) < 0) return Ref();
  Ref kept = Ref::borrow(Py_None);
  if (PyList_GET_SIZE(reraised.get()) > 0) kept = project_onto(semantics, original, reraised.get());
  if (!kept || PyList_GET_SIZE(raised.get()) == 0) return kept;
  if (kept.get() != Py_None && PyList_Append(raised.get(), kept.get()) < 0) return Ref();
  if (PyList_GET_SIZE(raised.get()) == 1) return Ref::borrow(PyList_GET_ITEM(raised.get(), 0));
  return wrap(semantics, "", raised.get());
}

}  // namespace graphlift::eval
