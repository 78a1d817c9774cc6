// Owns: torch's ambient state of this thread that captured code may set: grad mode, autocast, torch-function modes,
// functorch's levels.
// Must not: guard it (ambient_check does).
#pragma once

#include <memory>

namespace graphlift::torch_layer {

bool in_functorch();
// A transform of torch.func, a level of forward-mode gradients or a dispatch mode of the program's is on: tensors may
// be more than their values, or each operator is seen.
bool in_transform();

// Remembers the state; the destructor puts it back and drops what autocast cached of stand-ins.
class AmbientState {
 public:
  AmbientState();
  ~AmbientState();
  AmbientState(const AmbientState&) = delete;
  AmbientState& operator=(const AmbientState&) = delete;
  static const char* function_state();  // torch._C._TorchFunctionState's name of what is on now
  bool unchanged() const;               // the state now is the remembered one

 private:
  struct Saved;
  struct Modes;
  std::unique_ptr<Saved> saved_;
  std::unique_ptr<Modes> modes_;  // torch-function modes
};

}  // namespace graphlift::torch_layer
