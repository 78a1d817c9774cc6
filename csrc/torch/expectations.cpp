// Owns: see expectations.h.
#include "torch/expectations.h"

#include <ATen/core/Tensor.h>
#include <torch/library.h>

#include <algorithm>
#include <string>

#include "ops/traits.h"
#include "torch/seeding.h"

namespace graphlift::torch_layer {
namespace {

void expect(const at::Tensor& value, bool truth) {
  if (value.is_nonzero() != truth) throw Unexpected();
}

bool is_expectation(const ir::Node& node) { return node.kind == ir::NodeKind::Call && node.op.str() == kExpect; }

bool takes_generator(const ir::Node& node) {
  return std::any_of(node.args.begin(), node.args.end(), [](const ir::Arg& arg) {
    const auto* text = std::get_if<std::string>(static_cast<const ir::Arg::variant*>(&arg));
    return text && (names_generator(*text) || names_made_generator(*text));
  });
}

}  // namespace

void register_expectations() {
  static auto* library = [] {
    if (c10::Dispatcher::singleton().findSchema({"graphlift::expect", ""}))
      return static_cast<torch::Library*>(nullptr);
    auto* made = new torch::Library(torch::Library::FRAGMENT, "graphlift", std::nullopt, __FILE__, __LINE__);
    made->def("expect(Tensor value, bool truth) -> ()", expect);
    return made;
  }();
  (void)library;
}

bool has_expectations(const ir::Graph& graph) {
  return std::any_of(graph.nodes().begin(), graph.nodes().end(), is_expectation);
}

std::string act_of(const ir::Graph& graph) {
  for (const ir::Node& node : graph.nodes()) {
    if (node.kind != ir::NodeKind::Call || is_expectation(node)) continue;
    const ops::Effect effect = ops::traits(node.op).effect;
    // What the program seeds itself it seeds again.
    const bool of_generators =
        effect == ops::Effect::Random && node.op.str().starts_with("graphlift::") && node.op.str() != kManualSeed;
    if (effect == ops::Effect::Write || of_generators || takes_generator(node)) return std::string(node.op.str());
  }
  return "";
}

}  // namespace graphlift::torch_layer
