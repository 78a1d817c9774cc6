// Owns: see bind.h.
#include "engine/bind.h"

namespace graphlift::engine {

namespace {

struct Call {
  PyFunctionObject* function;
  PyCodeObject* code;
  PyObject* const* args;
  Py_ssize_t positional;
  PyObject* kwnames;
  PyObject** locals;
  int named;        // parameters that take names: positional-or-keyword and keyword-only
  int extra_tuple;  // slot of *args, or -1
  int extra_dict;   // slot of **kwargs, or -1
};

bool bind_extra(const Call& call) {
  const int count = call.code->co_argcount;
  if (call.extra_tuple >= 0) {
    const Py_ssize_t extra = call.positional > count ? call.positional - count : 0;
    PyObject* tuple = PyTuple_New(extra);
    if (!tuple) return false;
    for (Py_ssize_t i = 0; i < extra; ++i) PyTuple_SET_ITEM(tuple, i, Py_NewRef(call.args[count + i]));
    call.locals[call.extra_tuple] = tuple;
  } else if (call.positional > count) {
    return false;
  }
  if (call.extra_dict >= 0) {
    call.locals[call.extra_dict] = PyDict_New();
    if (!call.locals[call.extra_dict]) return false;
  }
  return true;
}

// Parameter names are interned, and so are almost all keywords of calls.
int slot_of(const Call& call, PyObject* name) {
  PyObject* names = call.code->co_localsplusnames;
  for (int i = call.code->co_posonlyargcount; i < call.named; ++i)
    if (PyTuple_GET_ITEM(names, i) == name) return i;
  for (int i = call.code->co_posonlyargcount; i < call.named; ++i)
    if (PyUnicode_Compare(PyTuple_GET_ITEM(names, i), name) == 0) return i;
  return -1;
}

bool bind_keywords(const Call& call) {
  const Py_ssize_t count = call.kwnames ? PyTuple_GET_SIZE(call.kwnames) : 0;
  for (Py_ssize_t i = 0; i < count; ++i) {
    PyObject* name = PyTuple_GET_ITEM(call.kwnames, i);
    PyObject* value = call.args[call.positional + i];
    const int slot = slot_of(call, name);
    if (slot >= 0) {
      if (call.locals[slot]) return false;
      call.locals[slot] = Py_NewRef(value);
    } else if (call.extra_dict < 0 || PyDict_SetItem(call.locals[call.extra_dict], name, value) < 0) {
      return false;
    }
  }
  return true;
}

bool bind_defaults(const Call& call) {
  PyObject* defaults = call.function->func_defaults;
  const int count = call.code->co_argcount;
  const Py_ssize_t given = defaults ? PyTuple_GET_SIZE(defaults) : 0;
  for (int i = 0; i < count; ++i) {
    if (call.locals[i]) continue;
    const Py_ssize_t at = i - (count - given);
    if (at < 0) return false;
    call.locals[i] = Py_NewRef(PyTuple_GET_ITEM(defaults, at));
  }
  PyObject* kwdefaults = call.function->func_kwdefaults;
  for (int i = count; i < call.named; ++i) {
    if (call.locals[i]) continue;
    PyObject* value =
        kwdefaults ? PyDict_GetItemWithError(kwdefaults, PyTuple_GET_ITEM(call.code->co_localsplusnames, i)) : nullptr;
    if (!value) return false;
    call.locals[i] = Py_NewRef(value);
  }
  return true;
}

}  // namespace

bool bind_arguments(PyFunctionObject* function, PyObject* const* args, size_t nargsf, PyObject* kwnames,
                    PyObject** locals) {
  auto* code = reinterpret_cast<PyCodeObject*>(function->func_code);
  const int named = code->co_argcount + code->co_kwonlyargcount;
  const bool tuple = code->co_flags & CO_VARARGS;
  Call call{function,
            code,
            args,
            PyVectorcall_NARGS(nargsf),
            kwnames,
            locals,
            named,
            tuple ? named : -1,
            code->co_flags & CO_VARKEYWORDS ? named + tuple : -1};
  const Py_ssize_t direct = call.positional < code->co_argcount ? call.positional : code->co_argcount;
  for (Py_ssize_t i = 0; i < direct; ++i) locals[i] = Py_NewRef(args[i]);
  const bool fits = bind_extra(call) && bind_keywords(call) && bind_defaults(call);
  if (!fits) PyErr_Clear();
  return fits;
}

}  // namespace graphlift::engine
