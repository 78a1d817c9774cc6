// Owns: the guard on torch's state that steers how a program runs: grad and inference mode, autocast, defaults,
// determinism, functorch and torch-function modes. Must not: run Python, or read what no operator depends on.
#include <ATen/Context.h>
#include <ATen/PythonTorchFunctionTLS.h>
#include <ATen/SavedTensorHooks.h>
#include <ATen/autocast_mode.h>
#include <c10/core/DefaultDtype.h>
#include <c10/core/GradMode.h>
#include <c10/core/InferenceMode.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <torch/csrc/PyInterpreter.h>

#include <array>
#include <string>
#include <vector>

#include "torch/dispatch_mode.h"
#include "torch/tracer.h"

namespace graphlift::torch_layer {
namespace {

constexpr std::array kAutocastDevices{at::kCPU, at::kCUDA};

struct Autocast {
  bool enabled = false;
  at::ScalarType dtype = at::kFloat;
  bool operator==(const Autocast&) const = default;
};

// FIELD(type, name, how it is read, words)
#define GRAPHLIFT_AMBIENT(FIELD)                                                                                      \
  FIELD(bool, grad_mode, c10::GradMode::is_enabled(), "grad mode")                                                    \
  FIELD(bool, inference_mode, c10::InferenceMode::is_enabled(), "inference mode")                                     \
  FIELD(Autocast, autocast_cpu, autocast(at::kCPU), "autocast on CPU")                                                \
  FIELD(Autocast, autocast_cuda, autocast(at::kCUDA), "autocast on CUDA")                                             \
  FIELD(bool, autocast_cache, at::autocast::is_autocast_cache_enabled(), "autocast's cache")                          \
  FIELD(caffe2::TypeMeta, default_dtype, c10::get_default_dtype(), "default dtype")                                   \
  FIELD(bool, deterministic, at::globalContext().deterministicAlgorithms(), "deterministic algorithms")               \
  FIELD(bool, deterministic_warn, at::globalContext().deterministicAlgorithmsWarnOnly(), "determinism's warn_only")   \
  FIELD(at::impl::TorchFunctionDisabledState, function_state, at::impl::PythonTorchFunctionTLS::get_disabled_state(), \
        "__torch_function__ state")                                                                                   \
  FIELD(int64_t, function_modes, at::impl::PythonTorchFunctionTLS::stack_len(), "number of torch function modes")     \
  FIELD(int64_t, dispatch_modes, foreign_modes(), "number of torch dispatch modes")                                   \
  FIELD(bool, functorch, in_functorch(), "functorch transform")                                                       \
  FIELD(bool, saved_hooks, bool(at::SavedTensorDefaultHooks::get_hooks()), "saved tensor hooks")

Autocast autocast(at::DeviceType device) {
  if (!at::autocast::is_autocast_enabled(device)) return {};
  return {true, at::autocast::get_autocast_dtype(device)};
}

bool in_functorch() {
  return c10::impl::tls_is_dispatch_key_included(c10::DispatchKey::FuncTorchDynamicLayerFrontMode);
}

struct Ambient {
#define FIELD(type, name, read, words) type name = read;
  GRAPHLIFT_AMBIENT(FIELD)
#undef FIELD
};

// Mode objects of the torch-function stack (torch.set_default_device puts one there).
std::vector<PyObject*> function_modes() {
  std::vector<PyObject*> modes;
  for (int64_t i = 0; i < at::impl::PythonTorchFunctionTLS::stack_len(); ++i)
    modes.push_back(at::impl::PythonTorchFunctionTLS::get_stack_at(i)->ptr(getPyInterpreter()));
  return modes;
}

class AmbientCheck final : public guards::LeafCheck {
 public:
  AmbientCheck() {
    for (PyObject* mode : function_modes()) modes_.push_back(Ref::borrow(mode));
  }
  bool check(PyObject*, int64_t*) const override {
#define FIELD(type, name, read, words) \
  if (!(expected_.name == (read))) return false;
    GRAPHLIFT_AMBIENT(FIELD)
#undef FIELD
    for (size_t i = 0; i < modes_.size(); ++i) {
      const auto& mode = at::impl::PythonTorchFunctionTLS::get_stack_at(static_cast<int64_t>(i));
      if (mode->ptr(getPyInterpreter()) != modes_[i].get()) return false;
    }
    return true;
  }
  std::string text(const std::string&) const override {
    std::string words = expected_.grad_mode ? "grad mode on" : "grad mode off";
    if (expected_.inference_mode) words += ", inference mode";
    if (expected_.autocast_cpu.enabled || expected_.autocast_cuda.enabled) words += ", autocast";
    return "torch's state: " + words;
  }
  std::string explain(PyObject*) const override {
#define FIELD(type, name, read, words) \
  if (!(expected_.name == (read))) return words " has changed";
    GRAPHLIFT_AMBIENT(FIELD)
#undef FIELD
    return "torch function modes have changed";
  }
  int cost() const override { return 0; }

 private:
  Ambient expected_;
  std::vector<Ref> modes_;
};

}  // namespace

std::unique_ptr<guards::LeafCheck> ambient_check() { return std::make_unique<AmbientCheck>(); }

}  // namespace graphlift::torch_layer
