// Owns: what every graph must hold between passes.
// Must not: look into a node that it has not met in the graph: it may be freed.
#include <unordered_set>

#include "ir/graph.h"

namespace graphlift::ir {
namespace {

class Verifier {
 public:
  explicit Verifier(const Graph& graph) : graph_(graph) {}

  std::string run() {
    size_t inputs = 0;
    bool calls = false;
    for (const Node& node : graph_.nodes()) {
      place_ = "%" + std::to_string(node.id);
      if (!ids_.insert(node.id).second) fail("its id is taken");
      if (node.kind == NodeKind::Input) {
        if (calls) fail("an input behind a call");
        bool listed = inputs < graph_.inputs().size() && graph_.inputs()[inputs] == &node;
        if (!listed) fail("not in its place in inputs()");
        ++inputs;
        check_input(node);
      } else {
        calls = true;
        check_call(node);
      }
      for (const auto& type : node.outputs)
        if (type) check_type(*type);
      if (!error_.empty()) return error_;
      met_.insert(&node);
    }
    place_ = "graph";
    if (inputs != graph_.inputs().size()) fail("inputs() names nodes that are not there");
    place_ = "return";
    for (const Arg& arg : graph_.outputs()) check_arg(arg);
    return error_;
  }

 private:
  void fail(const std::string& message) {
    if (error_.empty()) error_ = place_ + ": " + message;
  }

  void check_input(const Node& node) {
    if (node.outputs.size() != 1 || !node.outputs[0]) fail("an input has one type");
    if (!node.args.empty()) fail("an input has no arguments");
    if (node.backward || node.must_recompute || node.checkpoint) fail("flags of calls on an input");
  }

  void check_call(const Node& node) {
    if (node.op == Op()) fail("a call without an operator");
    for (const Arg& arg : node.args) check_arg(arg);
  }

  void check_arg(const Arg& arg) {
    for_each_value(arg, [&](const ValueRef& value) {
      if (!value.node) return fail("uses a null value");
      if (!met_.count(value.node)) return fail("uses a value that no node before it defines");
      bool there = value.index >= 0 && static_cast<size_t>(value.index) < value.node->outputs.size();
      std::string name = "%" + std::to_string(value.node->id) + "." + std::to_string(value.index);
      if (!there) return fail("uses " + name + ", which its node has not");
      if (!value.node->outputs[value.index]) fail("uses " + name + ", which has no type");
    });
  }

  void check_type(const TensorType& type) {
    if (type.dtype == DType::undefined || bytes(type.dtype) == 0) fail("a type without a dtype");
    if (type.sizes.size() != type.strides.size()) fail("a type whose sizes and strides differ in number");
    for (const Sym& size : type.sizes)
      if (size.is_constant() && size.constant() < 0) fail("a negative size");
    for (const Sym& stride : type.strides)
      if (stride.is_constant() && stride.constant() < 0) fail("a negative stride");
    if (type.offset.is_constant() && type.offset.constant() < 0) fail("a negative offset");
  }

  const Graph& graph_;
  std::unordered_set<const Node*> met_;
  std::unordered_set<int> ids_;
  std::string place_, error_;
};

}  // namespace

std::string verify(const Graph& graph) { return Verifier(graph).run(); }

}  // namespace graphlift::ir
