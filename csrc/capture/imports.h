// Owns: which imports happen while capturing: of loaded modules, and of what torch loads of itself.
// Must not: run a module of the program's.
#pragma once

#include "capture/callables.h"
#include "capture/capture.h"

namespace graphlift::capture {

// The module of that absolute name. Null: error or break.
Ref loaded_module(Capture& capture, PyObject* absolute);
// A module that a package holds; null without a break: it is no part of torch that torch asks for.
Ref torch_submodule(Capture& capture, PyObject* package, PyObject* name);
// importlib.import_module
Ref rule_import_module(Capture& capture, const CallArgs& call);

}  // namespace graphlift::capture
