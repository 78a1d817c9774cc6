// Owns: the hooks in Python on the gradient of a tensor, and the guard that they are these.
// Must not: call them. No torch header is needed to include it.
#pragma once

#include <memory>
#include <vector>

#include "base/ref.h"
#include "guards/guard.h"

namespace graphlift::torch_layer {

struct GradientHooks {
  std::vector<Ref> before;  // register_hook
  std::vector<Ref> after;   // register_post_accumulate_grad_hook
  std::vector<Ref> dicts;   // that hold them
  bool others = false;      // some are no Python objects, or belong to the accumulator
  bool any() const { return others || !before.empty() || !after.empty(); }
};

GradientHooks gradient_hooks(PyObject* tensor);
std::unique_ptr<guards::LeafCheck> gradient_hooks_check(GradientHooks hooks);

}  // namespace graphlift::torch_layer
