// Owns: see generator_states.h.
#include "torch/generator_states.h"

#include <ATen/Context.h>

#include <algorithm>
#include <mutex>

#include "ops/traits.h"
#include "torch/convert.h"
#include "torch/expectations.h"

namespace graphlift::torch_layer {

std::vector<at::Device> devices_to_restore(const ir::Graph& graph) {
  std::vector<at::Device> devices;
  if (!has_expectations(graph)) return devices;
  const auto add = [&](at::Device device) {
    if (std::find(devices.begin(), devices.end(), device) == devices.end()) devices.push_back(device);
  };
  for (const ir::Node& node : graph.nodes()) {
    if (node.kind != ir::NodeKind::Call || ops::traits(node.op).effect != ops::Effect::Random) continue;
    if (node.outputs.empty()) add(at::kCPU);
    for (const auto& output : node.outputs)
      if (output) add(to_torch(output->device));
  }
  return devices;
}

GeneratorStates::GeneratorStates(const std::vector<at::Device>& devices) {
  for (const at::Device device : devices) {
    at::Generator generator = at::globalContext().defaultGenerator(device);
    std::lock_guard<std::mutex> lock(generator.mutex());
    states_.emplace_back(generator, generator.get_state());
  }
}

void GeneratorStates::restore() {
  for (auto& [generator, state] : states_) {
    std::lock_guard<std::mutex> lock(generator.mutex());
    generator.set_state(state);
  }
}

}  // namespace graphlift::torch_layer
