// Owns: see raw_dict.h. The probing follows dictobject.c, whose table layout is the same from 3.11 on.
#define Py_BUILD_CORE 1
#include <Python.h>
// CPython's own atomics are C; its fallback on compiler builtins is valid C++ too.
#undef HAVE_STD_ATOMIC
#include "internal/pycore_dict.h"
#if PY_VERSION_HEX >= 0x030d0000
#include "internal/pycore_setobject.h"
#endif

#include "cpython/raw_dict.h"

namespace graphlift::cpython {

namespace {

constexpr int kPerturbShift = 5;

bool compares_by_identity(PyTypeObject* type) { return type->tp_richcompare == PyBaseObject_Type.tp_richcompare; }

// Types whose values are comparable among themselves by C code alone. Different families are never equal.
enum class Family : uint8_t { None, Number, Text, Bytes, Tuple, Identity };

Family family_of(PyObject* object) {
  PyTypeObject* type = Py_TYPE(object);
  if (type == &PyUnicode_Type) return Family::Text;
  if (type == &PyLong_Type || type == &PyBool_Type || type == &PyFloat_Type || type == &PyComplex_Type)
    return Family::Number;
  if (type == &PyBytes_Type) return Family::Bytes;
  if (type == &PyTuple_Type) return Family::Tuple;
  return compares_by_identity(type) ? Family::Identity : Family::None;
}

Answer raw_equal_tuples(PyObject* a, PyObject* b) {
  const Py_ssize_t size = PyTuple_GET_SIZE(a);
  if (PyTuple_GET_SIZE(b) != size) return Answer::No;
  Answer all = Answer::Yes;
  for (Py_ssize_t i = 0; i < size; ++i) {
    const Answer one = raw_equal(PyTuple_GET_ITEM(a, i), PyTuple_GET_ITEM(b, i));
    if (one == Answer::No) return Answer::No;
    if (one == Answer::Unknown) all = Answer::Unknown;
  }
  return all;
}

Py_ssize_t index_at(const PyDictKeysObject* keys, size_t i) {
  const char* indices = keys->dk_indices;
  const int bits = keys->dk_log2_size;
  if (bits < 8) return reinterpret_cast<const int8_t*>(indices)[i];
  if (bits < 16) return reinterpret_cast<const int16_t*>(indices)[i];
  if (bits < 32) return reinterpret_cast<const int32_t*>(indices)[i];
  return reinterpret_cast<const int64_t*>(indices)[i];
}

struct Entry {
  Py_hash_t hash;
  PyObject* key;
  PyObject* value;
};

Entry entry_at(const PyDictKeysObject* keys, Py_ssize_t index) {
  const char* entries = keys->dk_indices + (size_t{1} << keys->dk_log2_index_bytes);
  if (keys->dk_kind == DICT_KEYS_GENERAL) {
    const PyDictKeyEntry& entry = reinterpret_cast<const PyDictKeyEntry*>(entries)[index];
    return {entry.me_hash, entry.me_key, entry.me_value};
  }
  const PyDictUnicodeEntry& entry = reinterpret_cast<const PyDictUnicodeEntry*>(entries)[index];
  return {reinterpret_cast<PyASCIIObject*>(entry.me_key)->hash, entry.me_key, entry.me_value};
}

}  // namespace

Answer raw_equal(PyObject* a, PyObject* b) {
  if (a == b) return Answer::Yes;
  const Family family = family_of(a), other = family_of(b);
  if (family == Family::None || other == Family::None) return Answer::Unknown;
  if (family != other || family == Family::Identity) return Answer::No;
  if (family == Family::Tuple) return raw_equal_tuples(a, b);
  return PyObject_RichCompareBool(a, b, Py_EQ) == 1 ? Answer::Yes : Answer::No;
}

Answer raw_dict_lookup(PyObject* dict, PyObject* key, Py_hash_t hash, PyObject** value) {
  PyDictObject* self = reinterpret_cast<PyDictObject*>(dict);
  const PyDictKeysObject* keys = self->ma_keys;
  const size_t mask = (size_t{1} << keys->dk_log2_size) - 1;
  size_t perturb = static_cast<size_t>(hash);
  size_t i = perturb & mask;
  Answer absent = Answer::No;
  for (;;) {
    const Py_ssize_t index = index_at(keys, i);
    if (index == DKIX_EMPTY) return absent;
    if (index >= 0) {
      const Entry entry = entry_at(keys, index);
      if (entry.key == key || entry.hash == hash) {
        const Answer equal = raw_equal(entry.key, key);
        if (equal == Answer::Unknown) absent = Answer::Unknown;
        if (equal == Answer::Yes) {
          *value = self->ma_values ? self->ma_values->values[index] : entry.value;
          return *value ? Answer::Yes : Answer::No;
        }
      }
    }
    perturb >>= kPerturbShift;
    i = (i * 5 + perturb + 1) & mask;
  }
}

bool raw_set_next(PyObject* set, Py_ssize_t* position, PyObject** element, Py_hash_t* hash) {
  return _PySet_NextEntry(set, position, element, hash) != 0;
}

PyObject** instance_dict_address(PyObject* object) { return _PyObject_GetDictPtr(object); }

PyObject* weakref_target(PyObject* weakref) {
  PyObject* target = reinterpret_cast<PyWeakReference*>(weakref)->wr_object;
  return target == Py_None || Py_REFCNT(target) <= 0 ? nullptr : target;
}

}  // namespace graphlift::cpython
