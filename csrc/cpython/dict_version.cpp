// Owns: see dict_version.h.
#include "cpython/dict_version.h"

#pragma GCC diagnostic ignored "-Wdeprecated-declarations"  // 3.12 deprecates ma_version_tag, but keeps it true

namespace graphlift::cpython {

const uint64_t* dict_version_address(PyObject* dict) {
#if PY_VERSION_HEX < 0x030d0000
  return &reinterpret_cast<PyDictObject*>(dict)->ma_version_tag;
#else
  return nullptr;
#endif
}

const unsigned* type_version_address(PyTypeObject* type) { return &type->tp_version_tag; }

// Invalidating a tag sets it to 0 in all versions; up to 3.12 a flag says so too.
unsigned type_version(PyTypeObject* type) {
#if PY_VERSION_HEX < 0x030d0000
  if (!PyType_HasFeature(type, Py_TPFLAGS_VALID_VERSION_TAG)) return 0;
#endif
  return type->tp_version_tag;
}

}  // namespace graphlift::cpython
