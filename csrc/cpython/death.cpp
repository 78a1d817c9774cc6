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

// Numbers and texts: nothing comes of their death.
bool is_quiet(PyObject* object) {
  PyTypeObject* type = Py_TYPE(object);
  return !PyType_IS_GC(type) && !type->tp_finalize && !type->tp_del && !PyType_SUPPORTS_WEAKREFS(type);
}

}  // namespace

Dropping::Gone& Dropping::gone(PyObject* object) {
  size_t at = (reinterpret_cast<uintptr_t>(object) >> 4) * 0x9E3779B97F4A7C15u >> 32;
  for (;; ++at) {
    Gone& entry = table_[at & (size_ - 1)];
    if (!entry.object || entry.object == object) return entry;
  }
}

void Dropping::grow() {
  const std::vector<Gone> before(table_, table_ + size_);
  size_ *= 4;
  many_.assign(size_, Gone());
  table_ = many_.data();
  for (const Gone& entry : before)
    if (entry.object) gone(entry.object) = entry;
}

void Dropping::count(PyObject* reference) {
  if (is_quiet(reference)) return;
  if (2 * used_ > size_) grow();
  Gone& entry = gone(reference);
  if (!entry.object) ++used_;
  entry.object = reference;
  if (++entry.references == Py_REFCNT(reference)) dying_.push_back(reference);
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
