// Owns: see set_table.h.
#include "cpython/set_table.h"

#include <algorithm>
#include <utility>

namespace graphlift::cpython {

namespace {

PySetObject* table_of(PyObject* set) { return reinterpret_cast<PySetObject*>(set); }
size_t slots_of(const PySetObject* set) { return static_cast<size_t>(set->mask) + 1; }

// What is in the slot of a key that was removed: no reference is counted.
bool was_removed(const setentry& entry) { return entry.hash == -1; }

}  // namespace

bool same_table(PyObject* a, PyObject* b, bool (*same)(PyObject*, PyObject*)) {
  const PySetObject *x = table_of(a), *y = table_of(b);
  if (x->mask != y->mask || x->used != y->used || x->fill != y->fill) return false;
  if (x->finger != y->finger) return false;  // where pop() goes on
  for (size_t slot = 0; slot < slots_of(x); ++slot) {
    const setentry &of_a = x->table[slot], &of_b = y->table[slot];
    if (of_a.key == of_b.key) continue;
    if (!of_a.key || !of_b.key || was_removed(of_a) || was_removed(of_b) || !same(of_a.key, of_b.key)) return false;
  }
  return true;
}

Ref copy_of_set(PyObject* set, bool frozen) {
  Ref copy = Ref::steal(frozen ? PyFrozenSet_New(nullptr) : PySet_New(nullptr));
  if (!copy) return copy;
  const PySetObject* from = table_of(set);
  PySetObject* to = table_of(copy.get());
  if (slots_of(from) > PySet_MINSIZE) {
    setentry* table = PyMem_New(setentry, slots_of(from));
    if (!table) {
      PyErr_NoMemory();
      return Ref();
    }
    to->table = table;
  }
  std::copy_n(from->table, slots_of(from), to->table);
  for (size_t slot = 0; slot < slots_of(from); ++slot)
    if (!was_removed(to->table[slot])) Py_XINCREF(to->table[slot].key);
  to->fill = from->fill;
  to->used = from->used;
  to->mask = from->mask;
  to->finger = from->finger;
  return copy;
}

void swap_sets(PyObject* a, PyObject* b) {
  PySetObject *x = table_of(a), *y = table_of(b);
  const bool small_x = x->table == x->smalltable, small_y = y->table == y->smalltable;
  std::swap(x->fill, y->fill);
  std::swap(x->used, y->used);
  std::swap(x->mask, y->mask);
  std::swap(x->table, y->table);
  std::swap(x->finger, y->finger);
  std::swap_ranges(x->smalltable, x->smalltable + PySet_MINSIZE, y->smalltable);
  if (small_y) x->table = x->smalltable;
  if (small_x) y->table = y->smalltable;
  x->hash = y->hash = -1;
}

}  // namespace graphlift::cpython
