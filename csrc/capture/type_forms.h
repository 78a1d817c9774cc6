// Owns: `int | str`, `list[int]` and the like from outside: which are compared by what they are made of.
// Must not: know typing's own classes, which are Python.
#pragma once

#include <memory>

#include "guards/guard.h"

namespace graphlift::capture {

bool is_type_form(PyObject* object);
std::unique_ptr<guards::LeafCheck> type_form_check(PyObject* form);

}  // namespace graphlift::capture
