// Owns: batch norms of cuDNN as operators that say what they compute, so that they join the kernels around them.
// Must not: part a norm from its gradient: what cuDNN keeps between the two is known to cuDNN alone.
#include <unordered_map>
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
  Node* forward = nullptr;  // null: something else than gradients reads what is kept
  std::vector<Node*> gradients;
  std::vector<Node*> copies;  // of what is kept: autograd makes one where its graph is retained
};

bool is_in_training(const Node& node) { return std::get<bool>(node.args[5]); }

// The recorder leaves running statistics out where they are written to. Kernels of torch's, should one be needed, give
// the input's strides.
bool is_pure(const Node& node) {
  const bool has_statistics = !node.args[3].is_none();
  return has_statistics != is_in_training(node) &&
         ops::same(ir::type_of(*node.args[0].value()).strides, node.outputs[0]->strides);
}

class Search {
 public:
  std::vector<Norm> run(ir::Graph* graph) {
    for (Node& node : graph->nodes())
      if (node.kind == ir::NodeKind::Call) visit(node);
    for (const ir::Arg& output : graph->outputs())
      ir::for_each_value(output, [&](const ValueRef& value) {
        if (Norm* norm = keeper_of(value)) norm->forward = nullptr;
      });
    std::erase_if(norms_, [](const Norm& norm) { return !norm.forward; });
    return std::move(norms_);
  }

 private:
  Norm* keeper_of(const ValueRef& value) {
    const auto found = keepers_.find(value);
    return found == keepers_.end() ? nullptr : &norms_[found->second];
  }

  void visit(Node& node) {
    static const ir::Op forward("aten::cudnn_batch_norm.default"), gradient("aten::cudnn_batch_norm_backward.default"),
        clone("aten::clone.default");
    for (size_t i = 0; i < node.args.size(); ++i)
      ir::for_each_value(node.args[i], [&](const ValueRef& value) {
        Norm* norm = keeper_of(value);
        if (!norm) return;
        if (node.op == gradient && i == kKeptArgument) {
          norm->gradients.push_back(&node);
        } else if (node.op == clone) {
          norm->copies.push_back(&node);
          keepers_.emplace(ValueRef{&node, 0}, keepers_.at(value));
        } else {
          norm->forward = nullptr;
        }
      });
    if (node.op != forward || !is_pure(node)) return;
    keepers_.emplace(ValueRef{&node, kKept}, norms_.size());
    norms_.push_back({&node, {}, {}});
  }

  std::vector<Norm> norms_;
  std::unordered_map<ValueRef, size_t, ir::ValueHash> keepers_;  // of what is kept, and of copies of it
};

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
  for (auto copy = norm.copies.rbegin(); copy != norm.copies.rend(); ++copy) graph->erase(*copy);
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
  const std::vector<Norm> norms = Search().run(graph);
  for (const Norm& norm : norms) open(graph, norm);
  return !norms.empty();
}

}  // namespace graphlift::passes
