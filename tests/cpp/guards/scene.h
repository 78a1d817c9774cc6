// Owns: what the tests of guards share: objects made by Python source, a frame's roots, and a set of guards with its
// tree. Must not: know a single guard or origin kind.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "guards/guard.h"

namespace graphlift::guards {

// Python names that source can set and change; the roots take locals from them.
class Scene {
 public:
  explicit Scene(const std::string& source = "") : names_(Ref::steal(PyDict_New())) {
    PyDict_SetItemString(names_.get(), "__builtins__", PyEval_GetBuiltins());
    run(source);
  }

  void run(const std::string& source) {
    Ref done = Ref::steal(PyRun_String(source.c_str(), Py_file_input, names_.get(), names_.get()));
    if (!done) PyErr_Print();
    ASSERT_TRUE(done) << source;
  }
  Ref eval(const std::string& source) {
    Ref value = Ref::steal(PyRun_String(source.c_str(), Py_eval_input, names_.get(), names_.get()));
    if (!value) PyErr_Print();
    EXPECT_TRUE(value) << source;
    return value;
  }
  // A borrowed object by name; null when it is deleted.
  PyObject* at(const std::string& name) const { return PyDict_GetItemString(names_.get(), name.c_str()); }

  // The named objects are locals 0, 1, ... and the same are on the stack and with callers; globals are the scene's
  // names.
  Roots roots(const std::vector<std::string>& names) {
    slots_.clear();
    for (const std::string& name : names) slots_.push_back(name.empty() ? nullptr : at(name));
    Roots roots;
    roots.locals = slots_.data();
    roots.stack = slots_.data();
    roots.callers = slots_.data();
    roots.globals = names_.get();
    roots.builtins = PyEval_GetBuiltins();
    roots.function = at("function");
    return roots;
  }

 private:
  Ref names_;
  std::vector<PyObject*> slots_;
};

inline Ref text_object(const std::string& text) { return Ref::steal(PyUnicode_FromString(text.c_str())); }

// A tree that is checked several times, so that both the plain walk and the shortcut give the answer.
class Checked {
 public:
  Checked(GuardSet guards, std::vector<OriginId> fetches = {}, size_t symbols = 0, PyCodeObject* code = nullptr)
      : tree_(std::move(guards), std::move(fetches), symbols, code), symbols_(symbols, 0) {}

  const GuardTree& tree() const { return tree_; }
  const std::vector<int64_t>& symbols() const { return symbols_; }
  std::vector<Ref>& fetched() { return fetched_; }

  bool once(const Roots& roots) {
    std::vector<PyObject*> fetched(tree_.fetch_count(), nullptr);
    const bool holds = tree_.check(roots, fetched.data(), symbols_.data());
    fetched_.clear();
    for (PyObject* object : fetched) {
      EXPECT_EQ(object != nullptr, holds);
      fetched_.push_back(Ref::steal(object));
    }
    EXPECT_FALSE(PyErr_Occurred());
    return holds;
  }
  bool holds(const Roots& roots) {
    const bool first = once(roots);
    for (int i = 0; i < 3; ++i) EXPECT_EQ(once(roots), first);
    EXPECT_EQ(tree_.explain(roots).empty(), first) << tree_.explain(roots);
    return first;
  }

 private:
  GuardTree tree_;
  std::vector<int64_t> symbols_;
  std::vector<Ref> fetched_;
};

}  // namespace graphlift::guards
