// Owns: see tuning.h.

#include "backends/codegen/tuning.h"

#include <Python.h>

#include "base/ref.h"

namespace graphlift::codegen {
namespace {

// A method of graphlift.tuning; null where it failed, which costs no more than what it would have remembered.
template <class... Args>
Ref call(const char* method, const char* format, Args... args) {
  const Ref module = Ref::steal(PyImport_ImportModule("graphlift.tuning"));
  Ref answer = module ? Ref::steal(PyObject_CallMethod(module.get(), method, format, args...)) : Ref();
  if (!answer) PyErr_Clear();
  return answer;
}

}  // namespace

bool asks_for_tuning(const std::string& mode) { return mode.starts_with("max-autotune"); }

std::string remembered_choice(const std::string& key) {
  const Ref answer = call("read", "s", key.c_str());
  const char* name = answer && PyUnicode_Check(answer.get()) ? PyUnicode_AsUTF8(answer.get()) : nullptr;
  return name ? name : "";
}

void remember_choice(const std::string& key, const std::string& choice) {
  call("write", "ss", key.c_str(), choice.c_str());
}

TuningProgress::TuningProgress(size_t operations) { call("begin", "n", static_cast<Py_ssize_t>(operations)); }
TuningProgress::~TuningProgress() { call("end", nullptr); }
void TuningProgress::step() { call("step", nullptr); }

}  // namespace graphlift::codegen
