// Owns: what happens when references are dropped, found out without dropping them. Must not: run code of the program's.
#pragma once

#include <Python.h>

#include <array>
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
  struct Gone {
    PyObject* object = nullptr;
    Py_ssize_t references = 0;  // so far
  };

  void count(PyObject* reference);
  Gone& gone(PyObject* object);
  void grow();

  // A table with open addresses: a hit of a region asks, and what few frames hold fits without an allocation.
  std::array<Gone, 256> few_{};
  std::vector<Gone> many_;
  Gone* table_ = few_.data();
  size_t size_ = few_.size();
  size_t used_ = 0;
  std::vector<PyObject*> dying_;
  bool acts_ = false;
};

}  // namespace graphlift::cpython
