// Owns: random graphs for property tests of ir/, passes/ and autograd/, and their meaning as hashes.
// Must not: make graphs that verify() refuses.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "ir/graph.h"

namespace graphlift::ir {

class RandomGraph {
 public:
  explicit RandomGraph(unsigned seed) : engine_(seed) {}

  // Calls over `inputs` inputs; returns up to three of the values.
  std::unique_ptr<Graph> plain(int inputs, int calls) {
    begin();
    for (int i = 0; i < inputs; ++i) input("x" + std::to_string(i));
    for (int i = 0; i < calls; ++i) call(false);
    outputs(3, 0);
    return std::move(graph_);
  }

  // A joint graph: `primals` inputs, forward calls, one tangent for each of `forward_outputs`, backward calls.
  std::unique_ptr<Graph> joint(int primals, int calls, int forward_outputs, int gradients) {
    begin();
    for (int i = 0; i < primals; ++i) input("x" + std::to_string(i));
    for (int i = 0; i < calls; ++i) call(false);
    outputs(forward_outputs, 0);
    size_t first = values_.size();
    for (int i = 0; i < forward_outputs; ++i) input("tangent" + std::to_string(i));
    for (int i = 0; i < calls; ++i) call(true, pick(0, 2) ? first : 0);
    outputs(gradients, first);
    return std::move(graph_);
  }

  int pick(int low, int high) { return std::uniform_int_distribution<int>(low, high)(engine_); }

 private:
  void begin() {
    graph_ = std::make_unique<Graph>();
    values_.clear();
  }

  TensorType type() {
    TensorType type;
    static constexpr DType kDTypes[] = {DType::float32, DType::bfloat16, DType::int64, DType::bool_};
    type.dtype = kDTypes[pick(0, 9) < 7 ? 0 : pick(0, 3)];
    type.device = pick(0, 3) ? Device{} : Device{1, 0};
    for (int dims = pick(0, 3); dims > 0; --dims)
      type.sizes.push_back(pick(0, 2) ? Sym(pick(0, 9)) : Sym::symbol(pick(0, 1)) * Sym(pick(1, 3)) + Sym(pick(0, 2)));
    type.strides = contiguous_strides(type.sizes);
    if (pick(0, 9) == 0) type.offset = Sym(pick(1, 64));
    type.requires_grad = pick(0, 3) == 0;
    return type;
  }

  void input(const std::string& name) { values_.push_back({graph_->add_input(name, type()), 0}); }

  Arg value(size_t first) { return values_[pick(static_cast<int>(first), static_cast<int>(values_.size()) - 1)]; }

  Arg constant() {
    switch (pick(0, 9)) {
      case 0:
        return None{};
      case 1:
        return Sym(pick(-3, 3));
      case 2:
        return floordiv(Sym::symbol(0) + Sym(pick(0, 3)), Sym(2)) - Sym::symbol(1);
      case 3:
        return pick(-4, 4) / 3.0;
      case 4:
        return pick(0, 1) == 1;
      case 5:
        return DType::bfloat16;
      case 6:
        return Device{1, 0};
      case 7:
        return std::string("a \"word\"\n");
      case 8:
        return MemoryFormat{static_cast<int8_t>(pick(0, 2))};
      default:
        return ArgList{Sym(pick(0, 2)), Sym(-1)};
    }
  }

  void call(bool backward, size_t first = 0) {
    static const struct {
      const char* name;
      int tensors, outputs;
    } kOps[] = {
        {"aten::add.Tensor", 2, 1},          {"aten::mul.Tensor", 2, 1},     {"aten::relu.default", 1, 1},
        {"aten::mm.default", 2, 1},          {"aten::view.default", 1, 1},   {"aten::native_layer_norm.default", 3, 3},
        {"aten::bernoulli.p", 1, 1},         {"aten::clone.default", 1, 1},  {"aten::detach.default", 1, 1},
        {"aten::convolution.default", 3, 1}, {"aten::expand.default", 1, 1}, {"aten::split.Tensor", 1, 2}};
    const auto& op = kOps[pick(0, std::size(kOps) - 1)];
    ArgList args;
    for (int i = 0; i < op.tensors; ++i) args.push_back(value(first));
    if (op.name == std::string("aten::bernoulli.p")) args.push_back(Arg(0.5));
    if (pick(0, 3) == 0) args.push_back(ArgList{value(0), Arg(None{})});
    for (int constants = pick(0, 2); constants > 0; --constants) args.push_back(constant());
    std::vector<std::optional<TensorType>> types;
    for (int i = 0; i < op.outputs; ++i) types.emplace_back(type());
    Node* node = graph_->add_call(Op(op.name), std::move(args), types);
    if (pick(0, 1)) node->where = {"file.py", pick(1, 99), pick(0, 1) ? "forward" : ""};
    node->backward = backward;
    for (int i = 0; i < op.outputs; ++i) values_.push_back({node, i});
  }

  void outputs(int count, size_t first) {
    for (int i = 0; i < count; ++i) graph_->outputs().push_back(value(first));
  }

  std::mt19937 engine_;
  std::unique_ptr<Graph> graph_;
  std::vector<ValueRef> values_;
};

// What a graph computes, in hashes: of memory, and of what a value sees of it. A view has its base's memory. A random
// operator draws the next number of the machine, so drawing twice, not at all, or in another order is seen.
class HashMachine {
 public:
  struct Value {
    uint64_t memory = 0, seen = 0;
    bool operator==(const Value&) const = default;
  };
  std::function<bool(const Node&)> is_random = [](const Node& node) { return node.op.str() == "aten::bernoulli.p"; };
  std::function<bool(const Node&)> is_view = [](const Node& node) {
    static const std::set<std::string_view> views = {"aten::view.default", "aten::detach.default",
                                                     "aten::expand.default", "aten::split.Tensor"};
    return views.count(node.op.str()) != 0;
  };
  uint64_t draws = 0;

  // `inputs`: memory hashes.
  std::vector<Value> run(const Graph& graph, const std::vector<uint64_t>& inputs) {
    std::map<std::pair<const Node*, int>, Value> values;
    for (size_t i = 0; i < graph.inputs().size(); ++i)
      values[{graph.inputs()[i], 0}] = see(inputs.at(i), *graph.inputs()[i]->outputs[0]);
    auto hash_arg = [&](const Arg& arg) {
      uint64_t hash = std::hash<std::string>()(shape(arg));
      for_each_value(arg, [&](const ValueRef& value) { hash = mix(hash, values.at({value.node, value.index}).seen); });
      return hash;
    };
    for (const Node& node : graph.nodes()) {
      if (node.kind == NodeKind::Input) continue;
      uint64_t hash = std::hash<std::string_view>()(node.op.str());
      if (is_random(node)) hash = mix(hash, ++draws);
      for (const Arg& arg : node.args) hash = mix(hash, hash_arg(arg));
      const ValueRef* base = is_view(node) ? node.args.at(0).value() : nullptr;
      for (size_t i = 0; i < node.outputs.size(); ++i) {
        uint64_t memory = base ? values.at({base->node, base->index}).memory : mix(hash, i);
        values[{&node, static_cast<int>(i)}] = see(memory, *node.outputs[i]);
      }
    }
    std::vector<Value> results;
    for (const Arg& arg : graph.outputs())
      results.push_back(arg.value() ? values.at({arg.value()->node, arg.value()->index}) : Value{hash_arg(arg), 0});
    return results;
  }

  static uint64_t mix(uint64_t a, uint64_t b) {
    return (a ^ (b + 0x9e3779b97f4a7c15u + (a << 6) + (a >> 2))) * 0xff51afd7ed558ccdu;
  }

 private:
  static Value see(uint64_t memory, TensorType type) {
    type.requires_grad = false;
    return {memory, mix(memory, std::hash<std::string>()(type.str()))};
  }

  // The argument's text with all values made equal.
  static std::string shape(const Arg& arg) {
    if (arg.value()) return "%";
    if (!arg.list()) return print(arg);
    std::string text = "[";
    for (const Arg& item : *arg.list()) text += shape(item) + ",";
    return text + "]";
  }
};

inline std::vector<uint64_t> input_hashes(size_t count, uint64_t seed = 1) {
  std::vector<uint64_t> hashes;
  for (size_t i = 0; i < count; ++i) hashes.push_back(HashMachine::mix(seed, i));
  return hashes;
}

}  // namespace graphlift::ir
