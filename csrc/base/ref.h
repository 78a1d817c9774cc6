// Owns: reference counting of Python objects. `Ref` owns one reference (or is null); a plain `PyObject*` parameter is
// always borrowed. Must not: know anything of graphs, frames or torch.
#pragma once

#include <Python.h>

#include <utility>

namespace graphlift {

class Ref {
 public:
  Ref() = default;
  // Takes over the caller's reference.
  static Ref steal(PyObject* object) { return Ref(object); }
  // Takes a reference of its own. Null stays null.
  static Ref borrow(PyObject* object) { return Ref(Py_XNewRef(object)); }

  Ref(const Ref& other) : object_(Py_XNewRef(other.object_)) {}
  Ref(Ref&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  Ref& operator=(Ref other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }
  ~Ref() { Py_XDECREF(object_); }

  PyObject* get() const { return object_; }
  PyObject* release() { return std::exchange(object_, nullptr); }
  void reset() { Ref().swap(*this); }
  void swap(Ref& other) noexcept { std::swap(object_, other.object_); }
  explicit operator bool() const { return object_ != nullptr; }
  bool operator==(const Ref& other) const { return object_ == other.object_; }

 private:
  explicit Ref(PyObject* object) : object_(object) {}
  PyObject* object_ = nullptr;
};

// The pending Python exception, put aside while code that may run Python cleans up, and put back.
class SavedError {
 public:
  SavedError() { PyErr_Fetch(&type_, &value_, &traceback_); }
  ~SavedError() { PyErr_Restore(type_, value_, traceback_); }
  SavedError(const SavedError&) = delete;
  SavedError& operator=(const SavedError&) = delete;

 private:
  PyObject *type_, *value_, *traceback_;
};

}  // namespace graphlift
