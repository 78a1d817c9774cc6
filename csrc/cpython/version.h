// Owns: which CPython this was built for, as a plain number (311, 312, ...), so that no other layer reads
// PY_VERSION_HEX.
#pragma once

#include <Python.h>

namespace graphlift::cpython {

inline constexpr int kVersion = (PY_VERSION_HEX >> 24) * 100 + ((PY_VERSION_HEX >> 16) & 0xff);

}  // namespace graphlift::cpython
