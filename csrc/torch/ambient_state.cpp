// Owns: see ambient_state.h.
#include "torch/ambient_state.h"

#include <ATen/PythonTorchFunctionTLS.h>
#include <ATen/SavedTensorHooks.h>
#include <ATen/autocast_mode.h>
#include <ATen/core/grad_mode.h>
#include <c10/core/AutogradState.h>
#include <torch/csrc/autograd/forward_grad.h>

#include <array>
#include <optional>
#include <string>

#include "torch/dispatch_mode.h"
#include "torch/functorch.h"
#include "torch/program_calls.h"

// As torch's header has them, which includes one that torch does not install.
namespace at::functorch {
TORCH_API void setSingleLevelAutogradFunctionAllowed(bool allowed);
TORCH_API bool getSingleLevelAutogradFunctionAllowed();
TORCH_API void setInplaceRequiresGradAllowed(bool allowed);
TORCH_API bool getInplaceRequiresGradAllowed();
}  // namespace at::functorch

namespace graphlift::torch_layer {

namespace {

// Forward-mode gradients know one level.
bool in_dual_level() { return torch::autograd::ForwardADLevel::try_get_by_idx(0) != nullptr; }

constexpr std::array<c10::DeviceType, 2> kDevices = {c10::DeviceType::CPU, c10::DeviceType::CUDA};

int autocast_nesting() {
  at::autocast::increment_nesting();
  return at::autocast::decrement_nesting();
}

}  // namespace

bool in_transform() { return in_functorch() || in_dual_level() || foreign_modes() > 0; }

struct AmbientState::Modes : at::impl::PythonTorchFunctionTLS {
  explicit Modes(const at::impl::PythonTorchFunctionTLS& now) : PythonTorchFunctionTLS(now) {}
};

struct AmbientState::Saved {
  bool grad = at::GradMode::is_enabled();
  at::impl::TorchFunctionDisabledState function = at::impl::PythonTorchFunctionTLS::get_disabled_state();
  bool cache = at::autocast::is_autocast_cache_enabled();
  int nesting_depth = autocast_nesting();
  int64_t function_modes = program_function_modes();
  bool forward_grad = c10::AutogradState::get_tls_state().get_fw_grad_mode();
  bool inplace_requires_grad = at::functorch::getInplaceRequiresGradAllowed();
  bool single_level = at::functorch::getSingleLevelAutogradFunctionAllowed();
  size_t saved_hooks = at::SavedTensorDefaultHooks::get_tls_state().stack.size();
  std::optional<std::string> no_saved_hooks = at::SavedTensorDefaultHooks::get_disabled_error_message();
  size_t transforms = functorch_levels();
  bool dual_level = in_dual_level();
  bool flash = at::globalContext().userEnabledFlashSDP();
  bool mem_efficient = at::globalContext().userEnabledMemEfficientSDP();
  bool math = at::globalContext().userEnabledMathSDP();
  bool cudnn = at::globalContext().userEnabledCuDNNSDP();
  bool overrideable = at::globalContext().userEnabledOverrideableSDP();
  std::array<bool, 2> enabled;
  std::array<at::ScalarType, 2> dtype;

  Saved() {
    for (size_t i = 0; i < kDevices.size(); ++i) {
      enabled[i] = at::autocast::is_autocast_enabled(kDevices[i]);
      dtype[i] = at::autocast::get_autocast_dtype(kDevices[i]);
    }
  }
  bool operator==(const Saved& other) const = default;
};

AmbientState::AmbientState()
    : saved_(std::make_unique<Saved>()),
      modes_(std::make_unique<Modes>(at::impl::PythonTorchFunctionTLS::get_state())) {}

AmbientState::~AmbientState() {
  if (at::impl::PythonTorchFunctionTLS::stack_len() != saved_->function_modes)
    at::impl::PythonTorchFunctionTLS::set_state(*modes_);
  if (in_dual_level() && !saved_->dual_level) torch::autograd::ForwardADLevel::release_idx(0);
  close_functorch_levels(saved_->transforms);
  at::functorch::setInplaceRequiresGradAllowed(saved_->inplace_requires_grad);
  at::functorch::setSingleLevelAutogradFunctionAllowed(saved_->single_level);
  while (at::SavedTensorDefaultHooks::get_tls_state().stack.size() > saved_->saved_hooks)
    at::SavedTensorDefaultHooks::pop_hooks();
  if (saved_->no_saved_hooks)
    at::SavedTensorDefaultHooks::disable(*saved_->no_saved_hooks, false);
  else
    at::SavedTensorDefaultHooks::enable();
  c10::AutogradState::get_tls_state().set_fw_grad_mode(saved_->forward_grad);
  at::GradMode::set_enabled(saved_->grad);
  at::impl::PythonTorchFunctionTLS::set_disabled_state(saved_->function);
  at::globalContext().setSDPUseFlash(saved_->flash);
  at::globalContext().setSDPUseMemEfficient(saved_->mem_efficient);
  at::globalContext().setSDPUseMath(saved_->math);
  at::globalContext().setSDPUseCuDNN(saved_->cudnn);
  at::globalContext().setSDPUseOverrideable(saved_->overrideable);
  at::autocast::set_autocast_cache_enabled(saved_->cache);
  for (size_t i = 0; i < kDevices.size(); ++i) {
    at::autocast::set_autocast_enabled(kDevices[i], saved_->enabled[i]);
    at::autocast::set_autocast_dtype(kDevices[i], saved_->dtype[i]);
  }
  int depth = autocast_nesting();
  for (; depth < saved_->nesting_depth; ++depth) at::autocast::increment_nesting();
  for (; depth > saved_->nesting_depth; --depth) at::autocast::decrement_nesting();
  at::autocast::clear_cache();
}

const char* AmbientState::function_state() {
  using State = at::impl::TorchFunctionDisabledState;
  switch (at::impl::PythonTorchFunctionTLS::get_disabled_state()) {
    case State::ENABLED:
      return "ENABLED";
    case State::SUBCLASSES_DISABLED:
      return "SUBCLASSES_DISABLED";
    default:
      return "ALL_DISABLED";
  }
}

bool AmbientState::unchanged() const { return *saved_ == Saved(); }

}  // namespace graphlift::torch_layer
