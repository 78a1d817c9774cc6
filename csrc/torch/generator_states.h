// Owns: the states of random generators, to be set back where a graph is left in the middle (expectations.h).
// Must not: draw numbers.
#pragma once

#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>

#include <utility>
#include <vector>

#include "ir/graph.h"

namespace graphlift::torch_layer {

// Devices of calls that draw; none where a graph has no expectations.
std::vector<at::Device> devices_to_restore(const ir::Graph& graph);

// Of these devices' default generators, as they are now.
class GeneratorStates {
 public:
  explicit GeneratorStates(const std::vector<at::Device>& devices);
  void restore();

 private:
  std::vector<std::pair<at::Generator, at::Tensor>> states_;
};

}  // namespace graphlift::torch_layer
