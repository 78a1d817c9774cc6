// Owns: Python functions from source text, for C++ tests of the layers that work on frames.
#pragma once

#include <gtest/gtest.h>

#include "base/ref.h"

namespace graphlift {

// Runs `source` as a module and gives its globals.
inline Ref run_module(const char* source) {
  Ref globals = Ref::steal(PyDict_New());
  PyDict_SetItemString(globals.get(), "__builtins__", PyEval_GetBuiltins());
  Ref done = Ref::steal(PyRun_String(source, Py_file_input, globals.get(), globals.get()));
  if (!done) PyErr_Print();
  EXPECT_TRUE(done);
  return globals;
}

inline PyObject* get(const Ref& globals, const char* name) { return PyDict_GetItemString(globals.get(), name); }

inline PyCodeObject* code_of(const Ref& globals, const char* name) {
  return reinterpret_cast<PyCodeObject*>(PyFunction_GetCode(get(globals, name)));
}

inline long as_long(const Ref& value) { return value ? PyLong_AsLong(value.get()) : -999; }

}  // namespace graphlift
