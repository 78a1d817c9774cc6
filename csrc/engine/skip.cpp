// Owns: which code is never a root of its own.
#include <algorithm>
#include <iterator>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/once.h"
#include "engine/run.h"

namespace graphlift::engine {

namespace {

std::string folder_of(const char* module) {
  Ref loaded = Ref::steal(PyImport_ImportModule(module));
  Ref file = loaded ? Ref::steal(PyObject_GetAttrString(loaded.get(), "__file__")) : Ref();
  const char* text = file ? PyUnicode_AsUTF8(file.get()) : nullptr;
  PyErr_Clear();
  const std::string path = text ? text : "";
  return path.substr(0, path.rfind('/') + 1);
}

struct Folders {
  std::string torch, ours, library;
};

bool starts_with(std::string_view text, std::string_view prefix) {
  return !prefix.empty() && text.substr(0, prefix.size()) == prefix;
}

// Of torch: what computes on tensors is worth capturing on its own; the machinery around it is not.
constexpr std::string_view kTorchCode[] = {"nn/modules/", "nn/functional.py", "nn/attention/",
                                           "optim/",      "functional.py",    "nn/utils/parametriz"};
constexpr std::string_view kTorchMachinery[] = {"nn/modules/module.py", "nn/modules/_functions.py",
                                                "optim/lr_scheduler.py"};

const Folders& folders() {
  static constinit Once<Folders> once;
  return once.get([] { return Folders{folder_of("torch"), folder_of("graphlift"), folder_of("contextlib")}; });
}

// Of graphlift: what is captured in the place of something else.
bool is_substitute(std::string_view file) {
  constexpr std::string_view kFiles[] = {"substitutes.py", "attention.py", "encoders.py"};
  const std::string& ours = folders().ours;
  return starts_with(file, ours) &&
         std::find(std::begin(kFiles), std::end(kFiles), file.substr(ours.size())) != std::end(kFiles);
}

bool is_machinery(std::string_view file) {
  const auto& [torch, ours, library] = folders();
  if (file.empty() || file[0] == '<') return starts_with(file, "<frozen");
  if (starts_with(file, ours)) return !is_substitute(file);
  if (starts_with(file, torch)) {
    const std::string_view rest = file.substr(torch.size());
    for (std::string_view part : kTorchMachinery)
      if (starts_with(rest, part)) return true;
    for (std::string_view part : kTorchCode)
      if (starts_with(rest, part)) return false;
    return true;
  }
  if (!starts_with(file, library)) return false;
  return file.find("/site-packages/") == file.npos && file.find("/dist-packages/") == file.npos;
}

// Importing, and torch's own tracing of programs: nothing in them is the program's to be captured, what they call
// neither.
bool is_left_alone(std::string_view file) {
  if (starts_with(file, "<frozen importlib")) return true;
  const std::string& torch = folders().torch;
  if (!starts_with(file, torch)) return false;
  for (std::string_view part : {"_dynamo/", "_inductor/", "fx/_symbolic_trace.py", "fx/experimental/"})
    if (starts_with(file.substr(torch.size()), part)) return true;
  return false;
}

// What is true of a file, asked once: by the filename object, which is kept.
template <bool (*decide)(std::string_view)>
bool of_file(PyCodeObject* code) {
  static std::unordered_map<PyObject*, bool> by_file;
  PyObject* name = code->co_filename;
  auto found = by_file.find(name);
  if (found != by_file.end()) return found->second;
  const char* text = PyUnicode_AsUTF8(name);
  if (!text) PyErr_Clear();
  return by_file[Py_NewRef(name)] = decide(text ? text : "");
}

}  // namespace

bool is_skipped(PyCodeObject* code) { return of_file<is_machinery>(code); }

bool is_substitute(PyCodeObject* code) { return of_file<is_substitute>(code); }

bool is_left_alone(PyCodeObject* code) { return of_file<is_left_alone>(code); }

bool is_plain_function(PyCodeObject* code) {
  constexpr int kPlainFunction = CO_OPTIMIZED | CO_NEWLOCALS;
  constexpr int kOther = CO_GENERATOR | CO_COROUTINE | CO_ASYNC_GENERATOR | CO_ITERABLE_COROUTINE;
  return (code->co_flags & kPlainFunction) == kPlainFunction && !(code->co_flags & kOther);
}

bool is_captured_alone(PyCodeObject* code) {
  return is_plain_function(code) && !is_skipped(code) && !is_left_alone(code);
}

bool is_disabled(PyObject* function) {
  PyObject* dict = PyFunction_Check(function) ? reinterpret_cast<PyFunctionObject*>(function)->func_dict : nullptr;
  if (!dict) return false;
  for (const char* mark : {"_graphlift_disable", "_torchdynamo_disable"}) {
    PyObject* value = PyDict_GetItemString(dict, mark);
    if (value == Py_True) return true;
  }
  return false;
}

}  // namespace graphlift::engine
