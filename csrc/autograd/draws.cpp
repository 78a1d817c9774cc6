// Owns: matching a checkpoint's random draws with those of its first run, by value numbers.
// Must not: change what other calls compute.
#include "autograd/draws.h"

#include <algorithm>
#include <map>
#include <unordered_map>

#include "base/error.h"
#include "ops/traits.h"

namespace graphlift::autograd {
namespace {

bool draws(const ir::Node& node) {
  return node.kind == ir::NodeKind::Call && ops::traits(node.op).effect == ops::Effect::Random;
}

class Matcher {
 public:
  explicit Matcher(ir::Graph* graph) : graph_(*graph) {}

  void run() {
    std::vector<ir::Node*> matched;
    for (ir::Node& node : graph_.nodes()) {
      std::string key = key_of(node);
      auto& firsts = calls_[key];
      if (draws(node) && node.must_recompute) {
        GL_CHECK(firsts.size() == 1, "a checkpoint's random draw can't be told from others: " + ir::print(node));
        number_[&node] = number_.at(firsts[0]);
        size_t kept = keep_mask_only(node, firsts[0]) ? 1 : 0;
        for (size_t i = kept; i < node.outputs.size(); ++i)
          graph_.replace_uses({&node, static_cast<int>(i)}, {firsts[0], static_cast<int>(i)});
        matched.push_back(&node);
        continue;
      }
      bool fresh = node.kind == ir::NodeKind::Input || firsts.empty() || draws(node);
      number_[&node] = fresh ? next_++ : number_.at(firsts[0]);
      firsts.push_back(&node);
    }
    for (ir::Node* node : matched) graph_.erase(node);
  }

 private:
  // native_dropout(x, p, train): its first result is x * mask / (1 - p) again, so that of the first run the mask alone
  // is saved.
  bool keep_mask_only(ir::Node& node, ir::Node* first) {
    static const ir::Op dropout("aten::native_dropout.default"), masked("aten::native_dropout_backward.default");
    if (!(node.op == dropout) || node.args.size() != 3) return false;
    const double* p = std::get_if<double>(&node.args[1]);
    const bool* train = std::get_if<bool>(&node.args[2]);
    if (!p || !train || !*train || !node.outputs[0] || !node.outputs[1]) return false;
    double scale = *p == 1 ? 0.0 : 1 / (1 - *p);
    ir::Node* made =
        graph_.insert_call(&node, masked, {node.args[0], ir::ValueRef{first, 1}, scale}, {node.outputs[0]});
    made->where = node.where;
    made->backward = node.backward;
    made->must_recompute = true;
    number_[made] = next_++;
    graph_.replace_uses({&node, 0}, {made, 0});
    return true;
  }

  // The call with its arguments' numbers in place of values: equal for calls that compute the same, draws aside.
  std::string key_of(const ir::Node& node) const {
    if (node.kind == ir::NodeKind::Input) return "input " + std::to_string(node.id);
    std::string key(node.op.str());
    for (const ir::Arg& arg : node.args) append(arg, &key);
    return key;
  }

  void append(const ir::Arg& arg, std::string* key) const {
    if (const ir::ValueRef* value = arg.value()) {
      *key += " %" + std::to_string(number_.at(value->node)) + "." + std::to_string(value->index);
    } else if (const ir::ArgList* list = arg.list()) {
      *key += " [";
      for (const ir::Arg& item : *list) append(item, key);
      *key += "]";
    } else {
      *key += " " + ir::print(arg);
    }
  }

  ir::Graph& graph_;
  std::map<std::string, std::vector<ir::Node*>> calls_;
  std::unordered_map<const ir::Node*, int> number_;
  int next_ = 0;
};

}  // namespace

std::unique_ptr<ir::Graph> with_first_draws(const ir::Graph& joint) {
  const auto& nodes = joint.nodes();
  bool any =
      std::any_of(nodes.begin(), nodes.end(), [](const ir::Node& node) { return node.must_recompute && draws(node); });
  if (!any) return nullptr;
  auto graph = joint.clone();
  Matcher(graph.get()).run();
  return graph;
}

}  // namespace graphlift::autograd
