// Owns: outputs of batch norms in training as element-wise calls on what backward needs anyway (the input, mean, 1 /
// deviation), so that it can make them again instead of keeping them. Must not: touch how the statistics are made.
#include <unordered_set>

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

// Writes in front of `position`, which stands right behind the norm.
class Writer {
 public:
  Writer(ir::Graph* graph, Node* norm, Node* position) : graph_(*graph), norm_(norm), position_(position) {}

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

// Norms whose 1 / deviation a gradient keeps, and whose output something reads.
std::unordered_set<const Node*> find_norms(const ir::Graph& graph) {
  static const ir::Op gradient("aten::native_batch_norm_backward.default");
  std::unordered_set<const Node*> differentiated, read;
  auto note = [&](const ValueRef& value) {
    if (value.index == 0) read.insert(value.node);
  };
  for (const Node& node : graph.nodes()) {
    for (const ir::Arg& arg : node.args) ir::for_each_value(arg, note);
    if (node.kind != ir::NodeKind::Call || node.op != gradient) continue;
    const ValueRef* kept = node.args[kKeptDeviation].value();
    const bool own = kept && kept->node->kind == ir::NodeKind::Call && kept->index == kDeviation;
    if (own && is_norm_of_batch(*kept->node)) differentiated.insert(kept->node);
  }
  for (const ir::Arg& output : graph.outputs()) ir::for_each_value(output, note);
  std::erase_if(differentiated, [&](const Node* norm) { return !read.count(norm); });
  return differentiated;
}

}  // namespace

bool restate_norm_outputs(ir::Graph* graph) {
  const std::unordered_set<const Node*> norms = find_norms(*graph);
  if (norms.empty()) return false;
  auto& nodes = graph->nodes();
  for (auto it = nodes.begin(); it != nodes.end();) {
    Node* norm = &*it++;
    if (norms.count(norm))
      graph->replace_uses({norm, 0}, Writer(graph, norm, &*it).run());  // its gradient is behind it
  }
  return true;
}

}  // namespace graphlift::passes
