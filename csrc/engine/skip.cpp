// Owns: which code is never a root of its own.
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

bool is_machinery(std::string_view file) {
  static constinit Once<Folders> once;
  const auto& [torch, ours, library] =
      once.get([] { return Folders{folder_of("torch"), folder_of("graphlift"), folder_of("contextlib")}; });
  if (file.empty() || file[0] == '<') return starts_with(file, "<frozen");
  if (starts_with(file, ours)) return true;
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

bool is_import_file(std::string_view file) { return starts_with(file, "<frozen importlib"); }

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

bool is_import_machinery(PyCodeObject* code) { return of_file<is_import_file>(code); }

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
