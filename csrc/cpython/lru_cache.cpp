// Owns: see lru_cache.h. The structs are those of Modules/_functoolsmodule.c, the same from 3.11 to 3.14.
#include "cpython/lru_cache.h"

#include <cstring>

#include "base/once.h"

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

// The function of a cache while it is filled: gives the answer, and its place back to the cache's own.
struct Answer {
  Cache* cache;
  PyObject* function;
  PyObject* answer;
  PyObject* nested;  // fillings in the function's own course; None: there are none
};

PyObject* fill(PyObject*, PyObject* const* args, Py_ssize_t nargs);

PyObject* give(PyObject* capsule, PyObject*, PyObject*) {
  auto* given = static_cast<Answer*>(PyCapsule_GetPointer(capsule, nullptr));
  if (!given) return nullptr;
  given->cache->func = given->function;
  const Ref nested = Ref::borrow(given->nested), answer = Ref::borrow(given->answer);
  for (Py_ssize_t i = 0; nested.get() != Py_None && i < PyTuple_GET_SIZE(nested.get()); ++i) {
    PyObject* filling = PyTuple_GET_ITEM(nested.get(), i);
    if (!Ref::steal(fill(nullptr, &PyTuple_GET_ITEM(filling, 0), PyTuple_GET_SIZE(filling)))) return nullptr;
  }
  return Py_NewRef(answer.get());
}

PyMethodDef kGive = {"answer", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(give)),
                     METH_VARARGS | METH_KEYWORDS, nullptr};

PyObject* fill(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
  Cache* cache = nargs < 4 ? nullptr : as_cache(args[0]);
  if (!cache) {
    PyErr_SetString(PyExc_TypeError, "a cache, an answer, names of keywords and nested fillings are needed");
    return nullptr;
  }
  PyObject* names = args[2] == Py_None ? nullptr : args[2];
  const Py_ssize_t named = names ? PyTuple_GET_SIZE(names) : 0;
  const Ref hold = Ref::borrow(args[0]);
  Answer given{cache, cache->func, args[1], args[3]};
  const Ref capsule = Ref::steal(PyCapsule_New(&given, nullptr, nullptr));
  const Ref giver = capsule ? Ref::steal(PyCFunction_New(&kGive, capsule.get())) : Ref();
  if (!giver) return nullptr;
  cache->func = giver.get();
  PyObject* result = PyObject_Vectorcall(args[0], args + 4, static_cast<size_t>(nargs - 4 - named), names);
  if (cache->func == giver.get()) cache->func = given.function;  // it had an answer of its own
  return result;
}

PyMethodDef kFill = {"fill_cache", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(fill)), METH_FASTCALL,
                     nullptr};

}  // namespace

PyObject* lru_cache_filler() {
  static constinit Once<PyObject*> once;
  return once.get([] { return PyCFunction_New(&kFill, nullptr); });
}

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
