// Owns: batch norms of cuDNN as operators that say what they compute, so that they join the kernels around them.
// Must not: part a norm from its gradient: what cuDNN keeps between the two is known to cuDNN alone.
#include <algorithm>
#include <map>
#include <vector>

#include "ops/layout.h"
#include "passes/pass.h"

namespace graphlift::passes {
namespace {

using ir::Node;
using ir::ValueRef;

// input, weight, bias, running_mean, running_var, training, momentum, eps. Results: output, mean, 1 / deviation, kept.
constexpr int kKept = 3;
// input, grad, weight, running_mean, running_var, mean, 1 / deviation, eps, kept.
constexpr size_t kKeptArgument = 8;

struct Norm {
  Node* forward = nullptr;
  std::vector<Node*> gradients;
};

bool is_in_training(const Node& node) { return std::get<bool>(node.args[5]); }

// The recorder leaves running statistics out where they are written to. Kernels of torch's, should one be needed, give
// the input's strides.
bool is_pure(const Node& node) {
  const bool has_statistics = !node.args[3].is_none();
  return has_statistics != is_in_training(node) &&
         ops::same(ir::type_of(*node.args[0].value()).strides, node.outputs[0]->strides);
}

std::vector<Norm> find_norms(ir::Graph* graph) {
  static const ir::Op forward("aten::cudnn_batch_norm.default"), gradient("aten::cudnn_batch_norm_backward.default");
  std::map<const Node*, size_t> places;
  std::vector<Norm> norms;
  for (Node& node : graph->nodes()) {
    if (node.kind != ir::NodeKind::Call) continue;
    const bool is_gradient = node.op == gradient;
    for (size_t i = 0; i < node.args.size(); ++i)
      ir::for_each_value(node.args[i], [&](const ValueRef& value) {
        const auto found = value.index == kKept ? places.find(value.node) : places.end();
        if (found == places.end()) return;
        Norm& norm = norms[found->second];
        if (is_gradient && i == kKeptArgument)
          norm.gradients.push_back(&node);
        else
          norm.forward = nullptr;
      });
    if (node.op == forward && is_pure(node)) {
      places[&node] = norms.size();
      norms.push_back({&node, {}});
    }
  }
  for (const ir::Arg& output : graph->outputs())
    if (const ValueRef* value = output.value(); value && value->index == kKept && places.contains(value->node))
      norms[places[value->node]].forward = nullptr;
  std::erase_if(norms, [](const Norm& norm) { return !norm.forward; });
  return norms;
}

void replace(ir::Graph* graph, Node* node, const char* op, ir::ArgList args,
             std::vector<std::optional<ir::TensorType>> outputs) {
  Node* made = graph->insert_call(node, ir::Op(op), std::move(args), std::move(outputs));
  made->where = node->where;
  made->backward = node->backward;
  made->must_recompute = node->must_recompute;
  made->checkpoint = node->checkpoint;
  for (int i = 0; i < static_cast<int>(made->outputs.size()); ++i) graph->replace_uses({node, i}, {made, i});
  graph->erase(node);
}

void open(ir::Graph* graph, const Norm& norm) {
  for (Node* node : norm.gradients) {
    const ir::ArgList a = node->args;
    const ir::ArgList all = {true, true, true};
    replace(graph, node, "aten::native_batch_norm_backward.default",
            {a[1], a[0], a[2], ir::None{}, ir::None{}, a[5], a[6], true, a[7], all}, node->outputs);
  }
  Node* node = norm.forward;
  const ir::ArgList a = node->args;
  auto outputs = node->outputs;
  outputs.resize(kKept);
  if (is_in_training(*node)) {
    replace(graph, node, "aten::_native_batch_norm_legit.no_stats", {a[0], a[1], a[2], true, a[6], a[7]}, outputs);
    return;
  }
  for (int i : {1, 2}) outputs[static_cast<size_t>(i)]->sizes = ir::type_of(*a[3].value()).sizes;
  replace(graph, node, "aten::native_batch_norm.default", a, outputs);
}

}  // namespace

bool open_batch_norms(ir::Graph* graph) {
  const std::vector<Norm> norms = find_norms(graph);
  for (const Norm& norm : norms) open(graph, norm);
  return !norms.empty();
}

}  // namespace graphlift::passes
