// Owns: outputs of batch norms in training as element-wise calls on what backward needs anyway (the input, mean, 1 /
// deviation), so that it can make them again instead of keeping them. Must not: touch how the statistics are made.
#include <algorithm>
#include <unordered_set>
#include <vector>

#include "ops/layout.h"
#include "passes/pass.h"

namespace graphlift::passes {
namespace {

using ir::Node;
using ir::ValueRef;

constexpr int kMean = 1, kDeviation = 2;
constexpr size_t kKeptDeviation = 6;  // argument of the gradient

// input, weight, bias, ...
bool is_norm_of_batch(const Node& node) {
  static const ir::Op functional("aten::_native_batch_norm_legit_functional.default"),
      plain("aten::_native_batch_norm_legit.no_stats");
  if (node.op != functional && node.op != plain) return false;
  const ir::TensorType &x = ir::type_of(*node.args[0].value()), &mean = *node.outputs[kMean];
  const bool wide = mean.dtype == ir::DType::float32 || mean.dtype == ir::DType::float64;
  const bool trains = node.op == plain || std::get<bool>(node.args[5]);
  return trains && wide && x.rank() >= 2 && ir::is_floating(x.dtype) && ir::bytes(x.dtype) <= ir::bytes(mean.dtype) &&
         ops::same(x.strides, node.outputs[0]->strides);
}

class Writer {
 public:
  Writer(ir::Graph* graph, Node* norm) : graph_(*graph), norm_(norm), position_(norm) {
    for (auto it = graph->nodes().begin(); it != graph->nodes().end(); ++it)
      if (&*it == norm && ++it != graph->nodes().end()) position_ = &*it;
  }

  // (x - mean) * deviation * weight + bias, as kernels of norms compute it.
  ValueRef run() {
    ir::TensorType type = *norm_->outputs[0];
    type.dtype = norm_->outputs[kMean]->dtype;
    type.requires_grad = false;
    ValueRef y = call("aten::sub.Tensor", {*norm_->args[0].value(), per_channel({norm_, kMean}), int64_t{1}}, type);
    y = call("aten::mul.Tensor", {y, per_channel({norm_, kDeviation})}, type);
    if (const ValueRef* weight = norm_->args[1].value()) y = call("aten::mul.Tensor", {y, per_channel(*weight)}, type);
    if (const ValueRef* bias = norm_->args[2].value())
      y = call("aten::add.Tensor", {y, per_channel(*bias), int64_t{1}}, type);
    const ir::DType wanted = norm_->outputs[0]->dtype;
    if (wanted == type.dtype) return y;
    type.dtype = wanted;
    return call("aten::_to_copy.default", {y, wanted, ir::None{}, ir::None{}, ir::None{}, false, ir::None{}}, type);
  }

 private:
  ValueRef call(const char* op, ir::ArgList args, ir::TensorType type) {
    Node* made = graph_.insert_call(position_, ir::Op(op), std::move(args), {std::move(type)});
    made->where = norm_->where;
    made->backward = norm_->backward;
    made->must_recompute = norm_->must_recompute;
    made->checkpoint = norm_->checkpoint;
    return {made, 0};
  }

  // Beside an image: dims of size 1 behind the channels.
  ValueRef per_channel(ValueRef value) {
    ir::TensorType type = graph_.type(value);
    type.requires_grad = false;
    for (int dim = 1; dim + 1 < norm_->outputs[0]->rank(); ++dim) {
      type.sizes.emplace_back(1);
      type.strides.emplace_back(1);
      value = call("aten::unsqueeze.default", {value, static_cast<int64_t>(dim)}, type);
    }
    return value;
  }

  ir::Graph& graph_;
  Node* norm_;
  Node* position_;
};

std::unordered_set<ValueRef, ir::ValueHash> read_values(const ir::Graph& graph) {
  std::unordered_set<ValueRef, ir::ValueHash> found;
  auto note = [&](const ValueRef& value) { found.insert(value); };
  for (const Node& node : graph.nodes())
    for (const ir::Arg& arg : node.args) ir::for_each_value(arg, note);
  for (const ir::Arg& output : graph.outputs()) ir::for_each_value(output, note);
  return found;
}

}  // namespace

bool restate_norm_outputs(ir::Graph* graph) {
  static const ir::Op gradient("aten::native_batch_norm_backward.default");
  std::vector<Node*> norms;
  for (Node& node : graph->nodes()) {
    if (node.kind != ir::NodeKind::Call || node.op != gradient) continue;
    const ValueRef* kept = node.args[kKeptDeviation].value();
    const bool own = kept && kept->node->kind == ir::NodeKind::Call && kept->index == kDeviation;
    if (own && is_norm_of_batch(*kept->node) && std::find(norms.begin(), norms.end(), kept->node) == norms.end())
      norms.push_back(kept->node);
  }
  if (norms.empty()) return false;
  const auto read = read_values(*graph);
  std::erase_if(norms, [&](Node* norm) { return !read.count({norm, 0}); });
  for (Node* norm : norms) graph->replace_uses({norm, 0}, Writer(graph, norm).run());
  return !norms.empty();
}

}  // namespace graphlift::passes
