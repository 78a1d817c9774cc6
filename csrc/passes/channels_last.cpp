// Owns: the layout of images between convolutions: channels last, where the copies into and out of it are few beside
// the convolutions. Must not: change the layout of what leaves the graph, or of what draws random numbers.
#include <algorithm>

#include "ops/layout.h"
#include "ops/shape_arg.h"
#include "ops/shape_rule.h"
#include "ops/traits.h"
#include "passes/memory.h"
#include "passes/pass.h"

namespace graphlift::passes {
namespace {

using ir::TensorType;
using ir::ValueRef;

constexpr double kMostCopied = 0.5;  // elements copied, for each element that a convolution reads or writes

// Which arguments of a convolution are images, and what else there is.
struct Row {
  std::string_view op;
  std::vector<size_t> images;
  size_t weight, transposed, groups;
};

const Row* convolution(const ir::Node& node) {
  static const Row rows[] = {{"aten::convolution.default", {0}, 1, 6, 8},
                             {"aten::convolution_backward.default", {0, 1}, 2, 7, 9}};
  for (const Row& row : rows)
    if (node.op.str() == row.op) return &row;
  return nullptr;
}

// Torch's kernels of these take images as they lie, each argument for itself. Others rely on what autograd or a
// composite operator around them does to their arguments.
bool takes_any_layout(ir::Op op) {
  static const std::unordered_set<std::string_view> kNames = {
      "aten::convolution.default",
      "aten::convolution_backward.default",
      "aten::native_batch_norm.default",
      "aten::native_batch_norm_backward.default",
      "aten::_native_batch_norm_legit.default",
      "aten::_native_batch_norm_legit.no_stats",
      "aten::_native_batch_norm_legit_functional.default",
      "aten::_native_batch_norm_legit_no_training.default",
      "aten::cudnn_batch_norm.default",
      "aten::cudnn_batch_norm_backward.default",
      "aten::max_pool2d_with_indices.default",
      "aten::max_pool2d_with_indices_backward.default",
      "aten::avg_pool2d.default",
      "aten::avg_pool2d_backward.default",
      "aten::_adaptive_avg_pool2d.default",
      "aten::_adaptive_avg_pool2d_backward.default",
      "aten::upsample_nearest2d.default",
      "aten::upsample_nearest2d_backward.default",
      "aten::upsample_bilinear2d.default",
      "aten::upsample_bilinear2d_backward.default",
      "aten::cat.default",
      "aten::sum.default",
      "aten::sum.dim_IntList",
      "aten::mean.default",
      "aten::mean.dim",
      "aten::amax.default",
      "aten::_softmax.default",
  };
  const ops::OpTraits traits = ops::traits(op);
  return kNames.count(op.str()) > 0 || (traits.work != ops::Work::Heavy && traits.effect == ops::Effect::None);
}

// By strides that the program gives: what it reads depends on how all of the memory lies.
bool reads_memory_of_graph(const ir::Node& node) {
  static const std::unordered_set<std::string_view> kNames = {
      "aten::as_strided.default",
      "aten::as_strided_copy.default",
      "aten::as_strided_scatter.default",
      "aten::_reshape_alias.default",
  };
  if (kNames.count(node.op.str()) == 0) return false;
  return ops::memory_owner(*node.args[0].value()).node->kind != ir::NodeKind::Input;
}

bool is_image(const TensorType& type) {
  const bool narrow =
      type.dtype == ir::DType::float32 || type.dtype == ir::DType::bfloat16 || type.dtype == ir::DType::float16;
  return narrow && type.rank() == 4 && ir::is_constant(type);
}

bool lies_so(const TensorType& type, ops::Format format) {
  return ops::same(type.strides, ops::strides_for(type.sizes, format));
}

int64_t elements(const TensorType& type) { return ops::product(type.sizes).constant(); }

// Types that the operator's rule gives for the arguments as they are now; empty: outside of the rule.
std::vector<std::optional<TensorType>> inferred(const ir::Node& node) {
  const ops::OpRow* row = ops::find_op(node.op);
  std::vector<ops::ShapeArg> args;
  for (const ir::Arg& arg : node.args) args.push_back(ops::shape_arg(arg));
  ir::ShapeEnv nothing_varies;
  std::vector<std::optional<TensorType>> results;
  ops::ShapeCall call{args, nothing_varies, results};
  if (!row || !row->shape(call) || results.size() != node.outputs.size()) return {};
  for (size_t i = 0; i < results.size(); ++i) {
    if (results[i].has_value() != node.outputs[i].has_value()) return {};
    if (!results[i]) continue;
    if (results[i]->dtype != node.outputs[i]->dtype || !ops::same(results[i]->sizes, node.outputs[i]->sizes)) return {};
  }
  return results;
}

class Rewrite {
 public:
  explicit Rewrite(ir::Graph* graph) : graph_(*graph), memory_(*graph) {}

  // False: the graph is not to be used; something can't be put back into its own layout.
  bool run() {
    for (ir::Node& node : graph_.nodes())
      if (node.kind == ir::NodeKind::Call && !visit(node)) return false;
    return restore_outputs();
  }

  bool pays() const { return convolved_ > 0 && static_cast<double>(copied_) <= kMostCopied * convolved_; }

 private:
  bool visit(ir::Node& node) {
    if (reads_memory_of_graph(node)) return false;
    const Row* row = convolution(node);
    if (row && takes(node, *row)) {
      for (size_t i : row->images) turn(node, i);
      lay_weight(node, row->weight);
      for (const auto& output : node.outputs)
        if (output && output->rank() == 4) convolved_ += static_cast<double>(elements(*output));
    }
    if (!is_touched(node)) return true;
    const ops::Effect effect = ops::traits(node.op).effect;
    const bool takes = takes_any_layout(node.op);  // those of the list write at most to statistics
    if (effect == ops::Effect::Write && !takes) return false;
    std::vector<std::optional<TensorType>> types;
    if (effect != ops::Effect::Random && takes) types = inferred(node);
    if (types.empty()) {  // a view of a copy would be another memory than what leaves the graph beside it
      const ValueRef* viewed = ops::viewed_value(node);
      return !(viewed && memory_.escapes(*viewed)) && restore_arguments(node);
    }
    for (size_t i = 0; i < types.size(); ++i) {
      if (!types[i] ||
          (ops::same(types[i]->strides, node.outputs[i]->strides) && types[i]->offset.same(node.outputs[i]->offset)))
        continue;
      before_.emplace(ValueRef{&node, static_cast<int>(i)}, *node.outputs[i]);
      node.outputs[i]->strides = types[i]->strides;
      node.outputs[i]->offset = types[i]->offset;
    }
    return true;
  }

  bool takes(const ir::Node& node, const Row& row) const {
    const bool* transposed = std::get_if<bool>(static_cast<const ir::Arg::variant*>(&node.args[row.transposed]));
    if (!transposed || *transposed || !ir::is_number(node.args[row.groups], 1)) return false;
    return std::all_of(row.images.begin(), row.images.end(), [&](size_t i) {
      const ValueRef* value = node.args[i].value();
      return value && is_image(ir::type_of(*value));
    });
  }

  // The convolution reads argument `i` with its channels last.
  void turn(ir::Node& node, size_t i) {
    const ValueRef value = *node.args[i].value();
    const TensorType& type = ir::type_of(value);
    convolved_ += static_cast<double>(elements(type));
    if (lies_so(type, ops::Format::ChannelsLast)) return;
    node.args[i] = copied(&node, value, type, ops::Format::ChannelsLast, &turned_);
    touched_.insert(&node);
  }

  // A weight that the graph makes (a cast, most often) is made so that convolutions need no copy of it.
  void lay_weight(ir::Node& node, size_t i) {
    const ValueRef* weight = node.args[i].value();
    if (!weight || !is_image(ir::type_of(*weight))) return;
    const TensorType& type = ir::type_of(*weight);
    const bool made = ops::memory_owner(*weight).node->kind != ir::NodeKind::Input;
    if (!made || lies_so(type, ops::Format::ChannelsLast) || !lies_so(type, ops::Format::Contiguous)) return;
    const double before = copied_;
    node.args[i] = copied(&node, *weight, type, ops::Format::ChannelsLast, &turned_);
    copied_ = before;
    touched_.insert(&node);
  }

  ValueRef copied(ir::Node* before, ValueRef value, TensorType type, ops::Format format, ValueMap* known) {
    if (const auto found = known->find(value); found != known->end()) return found->second;
    copied_ += static_cast<double>(elements(type));
    type.strides = ops::strides_for(type.sizes, format);
    type.offset = 0;
    ir::Node* copy = graph_.insert_call(before, ir::Op("aten::clone.default"),
                                        {value, ir::MemoryFormat{static_cast<int8_t>(format)}}, {std::move(type)});
    if (before) {
      copy->where = before->where;
      copy->backward = before->backward;
      copy->must_recompute = before->must_recompute;
      copy->checkpoint = before->checkpoint;
    }
    return (*known)[value] = {copy, 0};
  }

  bool is_touched(const ir::Node& node) const {
    bool touched = touched_.count(&node) > 0;
    for (const ir::Arg& arg : node.args)
      ir::for_each_value(arg, [&](const ValueRef& value) { touched = touched || before_.count(value) > 0; });
    return touched;
  }

  bool restore(ir::Node* before, ValueRef* value) {
    const auto found = before_.find(*value);
    if (found == before_.end()) return true;
    if (!lies_so(found->second, ops::Format::Contiguous) || !found->second.offset.same(0)) return false;
    *value = copied(before, *value, found->second, ops::Format::Contiguous, &restored_);
    return true;
  }

  bool restore_arguments(ir::Node& node) {
    bool all = true;
    for (ir::Arg& arg : node.args)
      ir::for_each_value(arg, [&](ValueRef& value) { all = restore(&node, &value) && all; });
    return all;
  }

  // Each output has the layout, and the memory of its own, that it had.
  bool restore_outputs() {
    for (ir::Arg& output : graph_.outputs()) {
      const ValueRef* value = output.value();
      if (!value || before_.count(*value) == 0) continue;
      ValueRef restored = *value;
      if (ops::viewed_value(*restored.node) || !restore(nullptr, &restored)) return false;
      output = restored;
    }
    return true;
  }

  ir::Graph& graph_;
  const Memory memory_;
  std::unordered_map<ValueRef, TensorType, ir::ValueHash> before_;  // of values that lie otherwise now
  std::unordered_set<const ir::Node*> touched_;                     // convolutions with copied images
  ValueMap turned_, restored_;
  double copied_ = 0, convolved_ = 0;
};

bool has_convolutions(const ir::Graph& graph) {
  return std::any_of(graph.nodes().begin(), graph.nodes().end(),
                     [](const ir::Node& node) { return node.kind == ir::NodeKind::Call && convolution(node); });
}

}  // namespace

bool prefer_channels_last(ir::Graph* graph) {
  if (!has_convolutions(*graph)) return false;
  const auto trial = graph->clone();
  Rewrite tried(trial.get());
  if (!tried.run() || !tried.pays()) return false;
  const size_t before = graph->nodes().size();
  Rewrite(graph).run();
  return graph->nodes().size() != before;
}

}  // namespace graphlift::passes
