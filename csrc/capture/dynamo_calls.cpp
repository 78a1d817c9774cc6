// Owns: see dynamo_calls.h.
#include "capture/dynamo_calls.h"

#include <string_view>

#include "capture/attributes.h"
#include "capture/calls.h"

namespace graphlift::capture {

namespace {

std::string_view module_of(PyObject* globals) {
  PyObject* name = PyDict_Check(globals) ? PyDict_GetItemString(globals, "__name__") : nullptr;
  const char* text = name && PyUnicode_Check(name) ? PyUnicode_AsUTF8(name) : nullptr;
  if (!text) PyErr_Clear();
  return text ? text : "";
}

}  // namespace

bool is_within(std::string_view module, std::string_view package) {
  return module.starts_with(package) && (module.size() == package.size() || module[package.size()] == '.');
}

bool hides_from_dynamo(PyObject* function) {
  auto* code = reinterpret_cast<PyCodeObject*>(PyFunction_GET_CODE(function));
  const std::string_view module = module_of(PyFunction_GET_GLOBALS(function));
  auto is = [&](const char* name) { return PyUnicode_CompareWithASCIIString(code->co_qualname, name) == 0; };
  if (module == "torch._compile") return is("_disable_dynamo.<locals>.inner");
  // Where torch.compile was used it disables methods of torch's optimizers; what the program disables stays disabled.
  if (module != "torch._dynamo.eval_frame" || !is("DisableContext.__call__.<locals>._fn")) return false;
  PyObject* dict = reinterpret_cast<PyFunctionObject*>(function)->func_dict;
  PyObject* hidden = dict ? PyDict_GetItemString(dict, "_torchdynamo_orig_callable") : nullptr;
  return hidden && PyFunction_Check(hidden) && is_within(module_of(PyFunction_GET_GLOBALS(hidden)), "torch.optim");
}

bool is_note_for_dynamo(PyObject* function) {
  auto* code = reinterpret_cast<PyCodeObject*>(PyFunction_GET_CODE(function));
  return module_of(PyFunction_GET_GLOBALS(function)) == "torch._dynamo.mutation_guard" &&
         PyUnicode_CompareWithASCIIString(code->co_qualname, "GenerationTracker.tag") == 0;
}

Ref hidden_from_dynamo(Capture& capture, PyObject* function) {
  if (know_function(capture, function) < 0) return Ref();
  Ref names = Ref::steal(PyCode_GetFreevars(reinterpret_cast<PyCodeObject*>(PyFunction_GET_CODE(function))));
  Ref name = Ref::steal(PyUnicode_FromString("fn"));
  const Py_ssize_t at = names && name ? PySequence_Index(names.get(), name.get()) : -1;
  if (at < 0) return Ref();
  PyObject* cell = PyTuple_GET_ITEM(PyFunction_GET_CLOSURE(function), at);
  PyObject* hidden = PyCell_GET(cell);
  Outside* outside = capture.objects.find(cell);
  if (!hidden || !outside) return break_here(capture, "unknown_callable", describe(function));
  return capture.admit(hidden, capture.origins().child(outside->origin, guards::OriginKind::Cell));
}

bool is_code_of(const cpython::Frame& frame, std::string_view package) {
  return is_within(module_of(frame.globals()), package);
}

bool in_module(const Capture& capture, std::string_view package) {
  return !capture.frames.empty() && is_code_of(capture.frames.back(), package);
}

bool in_torch(const Capture& capture) { return in_module(capture, "torch"); }

bool in_optimizer(const Capture& capture) { return in_module(capture, "torch.optim"); }

Ref rule_is_compiling(Capture& capture, const CallArgs&) {
  if (!in_optimizer(capture)) return Ref::borrow(Py_True);
  const char* name = PyUnicode_AsUTF8(capture.frames.back().code()->co_name);
  // Whether a CUDA graph is being captured is no question here.
  const bool health_check = name && std::string_view(name).ends_with("_graph_capture_health_check");
  return Ref::borrow(health_check ? Py_True : Py_False);
}

}  // namespace graphlift::capture
