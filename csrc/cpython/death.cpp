// Owns: see death.h.
#include "cpython/death.h"

#include "cpython/generator.h"

namespace graphlift::cpython {
namespace {

bool calls_back(PyObject* object) {
  if (!PyType_SUPPORTS_WEAKREFS(Py_TYPE(object)) || PyType_Check(object)) return false;
  auto* reference = reinterpret_cast<PyWeakReference*>(*PyObject_GET_WEAKREFS_LISTPTR(object));
  for (; reference; reference = reference->wr_next)
    if (reference->wr_callback) return true;
  return false;
}

bool acts_as_it_dies(PyObject* object) {
  if (PyGen_CheckExact(object)) return acts_when_closed(object) || calls_back(object);
  const PyTypeObject* type = Py_TYPE(object);
  return type->tp_finalize || type->tp_del || calls_back(object);
}

}  // namespace

void Dropping::count(PyObject* reference) {
  if (++gone_[reference] == Py_REFCNT(reference)) dying_.push_back(reference);
}

void Dropping::drop(PyObject* reference) {
  if (!reference) return;
  count(reference);
  while (!dying_.empty() && !acts_) {
    PyObject* object = dying_.back();
    dying_.pop_back();
    acts_ = acts_as_it_dies(object);
    if (acts_ || !PyObject_IS_GC(object)) continue;
    const auto visit = [](PyObject* child, void* self) {
      static_cast<Dropping*>(self)->count(child);
      return 0;
    };
    Py_TYPE(object)->tp_traverse(object, visit, this);
  }
}

}  // namespace graphlift::cpython
