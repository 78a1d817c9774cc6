// Owns: the identity of an object that a guard compares with: held by a weak reference where the object allows one, so
// that a region keeps no module, tensor or closure alive. Must not: match a dead object, or another one at the same
// address.
#pragma once

#include "base/ref.h"

namespace graphlift::guards {

class Handle {
 public:
  Handle() = default;
  explicit Handle(PyObject* object) : address_(object) {
    if (!object) return;
    if (allows_weak(object)) holder_ = Ref::steal(PyWeakref_NewRef(object, nullptr));
    if (holder_) {
      live_ = &reinterpret_cast<PyWeakReference*>(holder_.get())->wr_object;
    } else {
      PyErr_Clear();
      holder_ = Ref::borrow(object);
    }
  }

  bool alive() const { return !live_ || *live_ == address_; }
  bool is(const PyObject* object) const { return object == address_ && alive(); }
  // Borrowed; null when the object is gone.
  PyObject* get() const { return alive() ? address_ : nullptr; }
  // The address, for comparison only.
  PyObject* address() const { return address_; }
  // The word that holds address() as long as the object lives; null when it is held strongly.
  PyObject* const* live() const { return live_; }
  int traverse(visitproc visit, void* arg) const {
    Py_VISIT(holder_.get());
    return 0;
  }

 private:
  static bool allows_weak(PyObject* object) {
    if (PyType_Check(object)) return PyType_HasFeature(reinterpret_cast<PyTypeObject*>(object), Py_TPFLAGS_HEAPTYPE);
    return PyType_SUPPORTS_WEAKREFS(Py_TYPE(object));
  }

  Ref holder_;
  PyObject* address_ = nullptr;
  PyObject* const* live_ = nullptr;
};

}  // namespace graphlift::guards
