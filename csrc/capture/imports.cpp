// Owns: see imports.h.
#include "capture/imports.h"

#include "capture/calls.h"
#include "capture/containers.h"
#include "capture/dynamo_calls.h"

namespace graphlift::capture {

namespace {

// What torch loads of itself when it first needs it is no part of the program.
bool torch_imports_itself(const Capture& capture, PyObject* module) {
  const char* text = PyUnicode_AsUTF8(module);
  if (!text) PyErr_Clear();
  return text && is_within(text, "torch") && in_torch(capture);
}

}  // namespace

Ref loaded_module(Capture& capture, PyObject* absolute) {
  PyObject* modules = PyImport_GetModuleDict();
  capture.know(modules, capture.origins().root(guards::OriginKind::Constant, 0, modules));
  Ref module = dict_get(capture, modules, absolute);
  if (PyErr_Occurred() || (module && module.get() != Py_None)) return module;
  if (module || !torch_imports_itself(capture, absolute))
    return break_here(capture, "unsupported_import", PyUnicode_AsUTF8(absolute));
  {
    const TorchForReal real(capture);
    Ref loaded = Ref::steal(PyImport_Import(absolute));
    if (!loaded) return loaded;
  }
  // That it was not there has been seen, and guarded, by now.
  capture.again = true;
  return break_here(capture, "unsupported_import", PyUnicode_AsUTF8(absolute));
}

Ref torch_submodule(Capture& capture, PyObject* package, PyObject* name) {
  Ref prefix = Ref::steal(PyModule_GetNameObject(package));
  Ref absolute = prefix ? Ref::steal(PyUnicode_FromFormat("%U.%U", prefix.get(), name)) : Ref();
  if (!absolute || !torch_imports_itself(capture, absolute.get())) {
    PyErr_Clear();
    return Ref();
  }
  return loaded_module(capture, absolute.get());
}

Ref rule_import_module(Capture& c, const CallArgs& call) {
  PyObject* name = call.nargs > 0 ? call.args[0] : nullptr;
  if (!name || !PyUnicode_CheckExact(name) || call.nargs > 2 || call.kwnames)
    return break_here(c, "unsupported_import", describe(call.callable));
  Ref absolute = Ref::borrow(name);
  if (call.nargs == 2 && PyUnicode_GET_LENGTH(name) > 0 && PyUnicode_READ_CHAR(name, 0) == '.') {
    cpython::HookScope nobody(nullptr);
    Ref util = Ref::steal(PyImport_ImportModule("importlib.util"));
    absolute = util ? Ref::steal(PyObject_CallMethod(util.get(), "resolve_name", "OO", name, call.args[1])) : Ref();
    if (!absolute) return absolute;
  }
  return loaded_module(c, absolute.get());
}

}  // namespace graphlift::capture
