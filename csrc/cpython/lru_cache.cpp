// Owns: see lru_cache.h. The structs are those of Modules/_functoolsmodule.c, the same from 3.11 to 3.14.
#include "cpython/lru_cache.h"

#include <cstring>

namespace graphlift::cpython {

namespace {

struct Link {
  PyObject_HEAD Link* previous;
  Link* next;
  Py_hash_t hash;
  PyObject* key;
  PyObject* result;
};

struct Cache {
  Link root;
  void* wrapper;
  int typed;
  PyObject* cache;
  Py_ssize_t hits;
  PyObject* func;
  Py_ssize_t maxsize;
  Py_ssize_t misses;
  PyObject* keyword_mark;
};

Cache* as_cache(PyObject* wrapper) {
  if (std::strcmp(Py_TYPE(wrapper)->tp_name, "functools._lru_cache_wrapper") != 0) return nullptr;
  auto* cache = reinterpret_cast<Cache*>(wrapper);
  const bool plausible = static_cast<size_t>(Py_TYPE(wrapper)->tp_basicsize) >= sizeof(Cache);
  return plausible && cache->cache && PyDict_CheckExact(cache->cache) ? cache : nullptr;
}

bool is_short_key(PyObject* key) { return PyUnicode_CheckExact(key) || PyLong_CheckExact(key); }

}  // namespace

PyObject* lru_cache_dict(PyObject* wrapper) {
  const Cache* cache = as_cache(wrapper);
  return cache && !cache->typed ? cache->cache : nullptr;
}

Ref lru_cache_key(PyObject* wrapper, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames) {
  const Py_ssize_t named = kwnames ? PyTuple_GET_SIZE(kwnames) : 0;
  if (named == 0 && nargs == 1 && is_short_key(args[0])) return Ref::borrow(args[0]);
  Ref key = Ref::steal(PyTuple_New(nargs + (named ? 2 * named + 1 : 0)));
  if (!key) return key;
  Py_ssize_t at = 0;
  auto add = [&](PyObject* part) { PyTuple_SET_ITEM(key.get(), at++, Py_NewRef(part)); };
  for (Py_ssize_t i = 0; i < nargs; ++i) add(args[i]);
  if (named) add(as_cache(wrapper)->keyword_mark);
  for (Py_ssize_t i = 0; i < named; ++i) {
    add(PyTuple_GET_ITEM(kwnames, i));
    add(args[nargs + i]);
  }
  return key;
}

PyObject* lru_link_result(PyObject* link) {
  if (std::strcmp(Py_TYPE(link)->tp_name, "functools._lru_list_elem") != 0) return nullptr;
  return reinterpret_cast<Link*>(link)->result;
}

}  // namespace graphlift::cpython
