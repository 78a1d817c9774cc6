// Owns: see dynamo_calls.h.
#include "capture/dynamo_calls.h"

#include <string_view>

namespace graphlift::capture {

namespace {

std::string_view module_of(PyObject* globals) {
  PyObject* name = PyDict_Check(globals) ? PyDict_GetItemString(globals, "__name__") : nullptr;
  const char* text = name && PyUnicode_Check(name) ? PyUnicode_AsUTF8(name) : nullptr;
  if (!text) PyErr_Clear();
  return text ? text : "";
}

bool is_within(std::string_view module, std::string_view package) {
  return module.starts_with(package) && (module.size() == package.size() || module[package.size()] == '.');
}

}  // namespace

Ref hidden_from_dynamo(PyObject* function) {
  auto* code = reinterpret_cast<PyCodeObject*>(PyFunction_GET_CODE(function));
  if (PyUnicode_CompareWithASCIIString(code->co_qualname, "_disable_dynamo.<locals>.inner") != 0) return Ref();
  if (module_of(PyFunction_GET_GLOBALS(function)) != "torch._compile") return Ref();
  PyObject* dict = reinterpret_cast<PyFunctionObject*>(function)->func_dict;
  PyObject* wrapped = dict ? PyDict_GetItemString(dict, "__wrapped__") : nullptr;
  return wrapped && PyFunction_Check(wrapped) ? Ref::borrow(wrapped) : Ref();
}

bool in_optimizer(const Capture& capture) {
  return !capture.frames.empty() && is_within(module_of(capture.frames.back().globals()), "torch.optim");
}

Ref rule_is_compiling(Capture& capture, const CallArgs&) {
  if (!in_optimizer(capture)) return Ref::borrow(Py_True);
  const char* name = PyUnicode_AsUTF8(capture.frames.back().code()->co_name);
  // Whether a CUDA graph is being captured is no question here.
  const bool health_check = name && std::string_view(name).ends_with("_graph_capture_health_check");
  return Ref::borrow(health_check ? Py_True : Py_False);
}

}  // namespace graphlift::capture
