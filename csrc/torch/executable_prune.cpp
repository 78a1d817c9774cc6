// Owns: see executable_prune.h.
#include "torch/executable_prune.h"

#include <set>
#include <utility>

#include "base/error.h"
#include "passes/pass.h"

namespace graphlift::torch_layer {
namespace {

using ValueKey = std::pair<const ir::Node*, int>;
ValueKey key(const ir::ValueRef& value) { return {value.node, value.index}; }

class TangentPruner {
 public:
  TangentPruner(ir::Graph* graph, size_t saved, const std::vector<bool>& defined) : graph_(*graph) {
    for (size_t i = 0; i < defined.size(); ++i) {
      ir::Node* input = graph_.inputs().at(saved + i);
      from_tangent_.insert(key({input, 0}));
      if (!defined[i]) undefined_.insert(key({input, 0}));
    }
  }

  void run() {
    for (ir::Node& node : graph_.nodes())
      if (node.kind != ir::NodeKind::Input) visit(node);
    for (ir::Arg& output : graph_.outputs())
      if (output.value() && undefined_.contains(key(*output.value()))) output = ir::None{};
  }

 private:
  void mark(std::set<ValueKey>* set, ir::Node& node) {
    for (size_t i = 0; i < node.outputs.size(); ++i) set->insert({&node, static_cast<int>(i)});
  }

  void visit(ir::Node& node) {
    int live = 0, missing = 0;
    for (const ir::Arg& arg : node.args) {
      ir::for_each_value(arg, [&](const ir::ValueRef& value) {
        if (undefined_.contains(key(value)))
          ++missing;
        else if (from_tangent_.contains(key(value)))
          ++live;
      });
    }
    if (live + missing > 0) mark(&from_tangent_, node);
    if (missing == 0) return;
    if (live == 0) return mark(&undefined_, node);
    if (drop_term(node)) return;
    for (ir::Arg& arg : node.args) fill_zeros(node, &arg);
  }

  // add(a, b, alpha=1) with one undefined term is the other term, when that has the sum's type already.
  bool drop_term(ir::Node& node) {
    static const ir::Op add("aten::add.Tensor");
    if (!(node.op == add) || !node.args[0].value() || !node.args[1].value()) return false;
    const ir::Sym* alpha = node.args[2].sym();
    if (!alpha || !alpha->is_constant() || alpha->constant() != 1) return false;
    const bool first_missing = undefined_.contains(key(*node.args[0].value()));
    const ir::ValueRef kept = *node.args[first_missing ? 1 : 0].value();
    if (!same_type(graph_.type(kept), graph_.type({&node, 0}))) return false;
    graph_.replace_uses({&node, 0}, kept);
    return true;
  }

  static bool same_type(const ir::TensorType& a, const ir::TensorType& b) {
    if (a.dtype != b.dtype || a.device != b.device || a.rank() != b.rank()) return false;
    for (size_t i = 0; i < a.sizes.size(); ++i)
      if (!a.sizes[i].same(b.sizes[i]) || !a.strides[i].same(b.strides[i])) return false;
    return true;
  }

  void fill_zeros(ir::Node& node, ir::Arg* arg) {
    ir::for_each_value(*arg, [&](ir::ValueRef& value) {
      if (!undefined_.contains(key(value))) return;
      const ir::TensorType& type = graph_.type(value);
      static const ir::Op zeros("aten::zeros.default");
      ir::ArgList sizes(type.sizes.begin(), type.sizes.end());
      ir::ArgList args{std::move(sizes), type.dtype, ir::None{}, type.device, ir::None{}};
      ir::TensorType result = type;
      result.strides = ir::contiguous_strides(type.sizes);
      result.offset = 0;
      value = {graph_.insert_call(&node, zeros, std::move(args), {result}), 0};
    });
  }

  ir::Graph& graph_;
  std::set<ValueKey> from_tangent_;  // values that depend on some tangent
  std::set<ValueKey> undefined_;
};

}  // namespace

std::unique_ptr<ir::Graph> without_tangents(const ir::Graph& backward, size_t saved, const std::vector<bool>& defined) {
  std::unique_ptr<ir::Graph> graph = backward.clone();
  TangentPruner(graph.get(), saved, defined).run();
  passes::remove_dead_code(graph.get());
  return graph;
}

}  // namespace graphlift::torch_layer
