// Owns: the guard on torch's state that steers how a program runs: grad and inference mode, autocast, defaults,
// determinism, functorch and torch-function modes. Must not: run Python, or read what no operator depends on.
#include <ATen/Context.h>
#include <ATen/PythonTorchFunctionTLS.h>
#include <ATen/SavedTensorHooks.h>
#include <ATen/autocast_mode.h>
#include <c10/core/AutogradState.h>
#include <c10/core/DefaultDtype.h>
#include <c10/core/GradMode.h>
#include <c10/core/InferenceMode.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <torch/csrc/PyInterpreter.h>

#include <array>
#include <string>
#include <vector>

#include "torch/ambient_state.h"
#include "torch/dispatch_mode.h"
#include "torch/program_calls.h"
#include "torch/tracer.h"

namespace graphlift::torch_layer {
namespace {

constexpr std::array kAutocastDevices{at::kCPU, at::kCUDA};

constexpr c10::DispatchKeySet kModeKeys({c10::DispatchKey::Python, c10::DispatchKey::PythonTLSSnapshot});

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
  FIELD(int64_t, function_modes, program_function_modes(), "number of torch function modes")                          \
  FIELD(int64_t, dispatch_modes, foreign_modes(), "number of torch dispatch modes")                                   \
  FIELD(bool, functorch, in_functorch(), "functorch transform")                                                       \
  FIELD(bool, saved_hooks, !at::SavedTensorDefaultHooks::get_tls_state().stack.empty(), "saved tensor hooks")         \
  FIELD(bool, no_saved_hooks, no_saved_hooks_allowed(), "whether saved tensor hooks are allowed")                     \
  FIELD(unsigned, attention, attention_kernels(), "kernels that attention may choose")                                \
  FIELD(bool, forward_grad, c10::AutogradState::get_tls_state().get_fw_grad_mode(), "forward-mode gradients")

Autocast autocast(at::DeviceType device) {
  if (!at::autocast::is_autocast_enabled(device)) return {};
  return {true, at::autocast::get_autocast_dtype(device)};
}

unsigned attention_kernels() {
  const at::Context& context = at::globalContext();
  return context.userEnabledFlashSDP() | context.userEnabledMemEfficientSDP() << 1 | context.userEnabledMathSDP() << 2 |
         context.userEnabledCuDNNSDP() << 3 | context.userEnabledOverrideableSDP() << 4;
}

bool no_saved_hooks_allowed() {
  return at::SavedTensorDefaultHooks::get_tls_state().disabled_error_message.has_value();
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

// Keys that a thread includes and excludes: inference mode, autocast on and off, functorch and dispatch modes all show
// there. Ours, on while a program is recorded, is left out.
struct ThreadKeys {
  c10::DispatchKeySet included, excluded;
  bool operator==(const ThreadKeys&) const = default;
};

ThreadKeys thread_keys() {
  const auto keys = c10::impl::tls_local_dispatch_key_set();
  return {keys.included_, keys.excluded_};
}

ThreadKeys keys_without_recorder() {
  ThreadKeys keys = thread_keys();
  if (foreign_modes() == 0) keys.included = keys.included - kModeKeys;
  return keys;
}

class AmbientCheck final : public guards::LeafCheck {
 public:
  AmbientCheck() {
    for (PyObject* mode : function_modes()) modes_.push_back(Ref::borrow(mode));
  }
  // What the thread's keys tell is not read again.
  bool check(PyObject*, int64_t*) const override {
    if (!(thread_keys() == keys_)) return false;
    const c10::AutogradState& autograd = c10::AutogradState::get_tls_state();
    if (autograd.get_grad_mode() != expected_.grad_mode || autograd.get_fw_grad_mode() != expected_.forward_grad)
      return false;
    if (c10::get_default_dtype() != expected_.default_dtype) return false;
    const at::Context& context = at::globalContext();
    if (context.deterministicAlgorithms() != expected_.deterministic ||
        context.deterministicAlgorithmsWarnOnly() != expected_.deterministic_warn)
      return false;
    if (attention_kernels() != expected_.attention) return false;
    const auto& hooks = at::SavedTensorDefaultHooks::get_tls_state();
    if (hooks.stack.empty() == expected_.saved_hooks) return false;
    if (hooks.disabled_error_message.has_value() != expected_.no_saved_hooks) return false;
    if ((expected_.autocast_cpu.enabled || expected_.autocast_cuda.enabled) && !same_autocast()) return false;
    return same_function_modes();
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
    return same_function_modes() ? "dispatch keys of the thread have changed" : "torch function modes have changed";
  }
  int cost() const override { return 0; }

 private:
  bool same_autocast() const {
    return autocast(at::kCPU) == expected_.autocast_cpu && autocast(at::kCUDA) == expected_.autocast_cuda &&
           at::autocast::is_autocast_cache_enabled() == expected_.autocast_cache;
  }
  bool same_function_modes() const {
    using at::impl::PythonTorchFunctionTLS;
    if (PythonTorchFunctionTLS::get_disabled_state() != expected_.function_state) return false;
    if (PythonTorchFunctionTLS::stack_len() != static_cast<int64_t>(modes_.size())) return false;
    for (size_t i = 0; i < modes_.size(); ++i) {
      const auto& mode = PythonTorchFunctionTLS::get_stack_at(static_cast<int64_t>(i));
      if (mode->ptr(getPyInterpreter()) != modes_[i].get()) return false;
    }
    return true;
  }

  Ambient expected_;
  ThreadKeys keys_ = keys_without_recorder();
  std::vector<Ref> modes_;
};

}  // namespace

std::unique_ptr<guards::LeafCheck> ambient_check() { return std::make_unique<AmbientCheck>(); }

}  // namespace graphlift::torch_layer
