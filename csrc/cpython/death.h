// Owns: what happens when references are dropped, found out without dropping them. Must not: run code of the program's.
#pragma once

#include <Python.h>

#include <unordered_map>
#include <vector>

namespace graphlift::cpython {

// References that go, one after the other, and what dies of it: an object of which no other reference is left, with
// all that it refers to. What only the collector finds does not die.
class Dropping {
 public:
  void drop(PyObject* reference);
  // Code runs as something dies: a `__del__`, the callback of a weak reference, the handler of a generator.
  bool acts() const { return acts_; }

 private:
  void count(PyObject* reference);

  std::unordered_map<PyObject*, Py_ssize_t> gone_;  // references so far, by object
  std::vector<PyObject*> dying_;
  bool acts_ = false;
};

}  // namespace graphlift::cpython
