// Owns: see ambient_state.h.
#include "torch/ambient_state.h"

#include <ATen/PythonTorchFunctionTLS.h>
#include <ATen/autocast_mode.h>
#include <ATen/core/grad_mode.h>

#include <array>

namespace graphlift::torch_layer {

namespace {

constexpr std::array<c10::DeviceType, 2> kDevices = {c10::DeviceType::CPU, c10::DeviceType::CUDA};

int nesting() {
  at::autocast::increment_nesting();
  return at::autocast::decrement_nesting();
}

}  // namespace

struct AmbientState::Modes : at::impl::PythonTorchFunctionTLS {
  explicit Modes(const at::impl::PythonTorchFunctionTLS& now) : PythonTorchFunctionTLS(now) {}
};

struct AmbientState::Saved {
  bool grad = at::GradMode::is_enabled();
  at::impl::TorchFunctionDisabledState function = at::impl::PythonTorchFunctionTLS::get_disabled_state();
  bool cache = at::autocast::is_autocast_cache_enabled();
  int nesting_depth = nesting();
  int64_t function_modes = at::impl::PythonTorchFunctionTLS::stack_len();
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
  at::GradMode::set_enabled(saved_->grad);
  at::impl::PythonTorchFunctionTLS::set_disabled_state(saved_->function);
  at::autocast::set_autocast_cache_enabled(saved_->cache);
  for (size_t i = 0; i < kDevices.size(); ++i) {
    at::autocast::set_autocast_enabled(kDevices[i], saved_->enabled[i]);
    at::autocast::set_autocast_dtype(kDevices[i], saved_->dtype[i]);
  }
  int depth = nesting();
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
