// Owns: building and editing graphs.
// Must not: check them (verify.cpp) or know what operators mean.
#include "ir/graph.h"

#include <algorithm>
#include <cmath>
#include <mutex>
#include <unordered_set>

#include "base/error.h"

namespace graphlift::ir {

Op::Op(std::string_view full_name) {
  // Never freed: operators are few, and their names are compared by address for as long as the process lives.
  static std::mutex* mutex = new std::mutex;
  static auto* names = new std::unordered_set<std::string>;
  std::lock_guard lock(*mutex);
  name_ = &*names->emplace(full_name).first;
}

Node* Graph::insert(std::list<Node>::iterator before, Node node) {
  auto position = nodes_.insert(before, std::move(node));
  positions_[&*position] = position;
  next_id_ = std::max(next_id_, position->id + 1);
  return &*position;
}

Node* Graph::add_input(std::string name, TensorType type) {
  auto position = inputs_.empty() ? nodes_.begin() : std::next(positions_.at(inputs_.back()));
  Node node;
  node.id = next_id_;
  node.kind = NodeKind::Input;
  node.input_name = std::move(name);
  node.outputs.emplace_back(std::move(type));
  inputs_.push_back(insert(position, std::move(node)));
  return inputs_.back();
}

Node* Graph::add_call(Op op, ArgList args, std::vector<std::optional<TensorType>> outputs, SourceLine where) {
  Node* node = insert_call(nullptr, op, std::move(args), std::move(outputs));
  node->where = std::move(where);
  return node;
}

Node* Graph::insert_call(Node* position, Op op, ArgList args, std::vector<std::optional<TensorType>> outputs) {
  auto before = nodes_.end();
  if (position) {
    GL_CHECK(position->kind != NodeKind::Input, "a call can't stand before an input");
    before = positions_.at(position);
  }
  Node node;
  node.id = next_id_;
  node.op = op;
  node.args = std::move(args);
  node.outputs = std::move(outputs);
  return insert(before, std::move(node));
}

void Graph::erase(Node* node) {
  auto position = positions_.find(node);
  GL_CHECK(position != positions_.end(), "the node to erase is not in the graph");
  if (node->kind == NodeKind::Input) std::erase(inputs_, node);
  nodes_.erase(position->second);
  positions_.erase(position);
}

void Graph::replace_uses(ValueRef from, ValueRef to) {
  auto visit = [&](ValueRef& value) {
    if (value == from) value = to;
  };
  for (Node& node : nodes_)
    for (Arg& arg : node.args) for_each_value(arg, visit);
  for (Arg& arg : outputs_) for_each_value(arg, visit);
}

Node* Graph::find(int id) {
  for (Node& node : nodes_)
    if (node.id == id) return &node;
  return nullptr;
}

std::unique_ptr<Graph> Graph::clone() const {
  auto copy = std::make_unique<Graph>();
  std::unordered_map<const Node*, Node*> copies;
  auto visit = [&](ValueRef& value) { value.node = copies.at(value.node); };
  for (const Node& node : nodes_) {
    Node* made = copy->insert(copy->nodes_.end(), node);
    for (Arg& arg : made->args) for_each_value(arg, visit);
    copies[&node] = made;
  }
  for (const Node* input : inputs_) copy->inputs_.push_back(copies.at(input));
  copy->outputs_ = outputs_;
  for (Arg& arg : copy->outputs_) for_each_value(arg, visit);
  copy->next_id_ = next_id_;
  return copy;
}

const TensorType& Graph::type(ValueRef value) const { return type_of(value); }

const TensorType& type_of(ValueRef value) {
  bool typed = value.node && value.index >= 0 && static_cast<size_t>(value.index) < value.node->outputs.size() &&
               value.node->outputs[value.index];
  GL_CHECK(typed, "the type of a value without a type was asked");
  return *value.node->outputs[value.index];
}

bool is_number(const Arg& arg, int64_t number) { return same(arg, number) || same(arg, static_cast<double>(number)); }

namespace {

void count(const Sym& sym, size_t* symbols) {
  std::vector<SymbolId> named;
  sym.collect(&named);
  for (const SymbolId id : named) *symbols = std::max(*symbols, static_cast<size_t>(id) + 1);
}

void count(const Arg& arg, size_t* symbols) {
  if (const Sym* sym = arg.sym()) count(*sym, symbols);
  if (const ArgList* list = arg.list())
    for (const Arg& item : *list) count(item, symbols);
}

}  // namespace

size_t symbol_count(const TensorType& type) {
  size_t symbols = 0;
  for (const Sym& size : type.sizes) count(size, &symbols);
  for (const Sym& stride : type.strides) count(stride, &symbols);
  count(type.offset, &symbols);
  return symbols;
}

size_t symbol_count(const Graph& graph) {
  size_t symbols = 0;
  for (const Node& node : graph.nodes()) {
    for (const Arg& arg : node.args) count(arg, &symbols);
    for (const auto& type : node.outputs)
      if (type) symbols = std::max(symbols, symbol_count(*type));
  }
  return symbols;
}

namespace {

bool same_double(double a, double b) {
  // -0.0 and 0.0 differ for a division.
  return std::isnan(a) ? std::isnan(b) : a == b && std::signbit(a) == std::signbit(b);
}

struct SameValue {
  const Arg& other;

  template <class T>
  bool operator()(const T& a) const {
    return a == std::get<T>(other);
  }
  bool operator()(const Sym& a) const { return a.same(std::get<Sym>(other)); }
  bool operator()(double a) const { return same_double(a, std::get<double>(other)); }
  bool operator()(const std::complex<double>& a) const {
    auto b = std::get<std::complex<double>>(other);
    return same_double(a.real(), b.real()) && same_double(a.imag(), b.imag());
  }
  bool operator()(const ArgList& a) const {
    const auto& b = std::get<ArgList>(other);
    return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const Arg& x, const Arg& y) { return same(x, y); });
  }
};

}  // namespace

bool same(const Arg& a, const Arg& b) { return a.index() == b.index() && std::visit(SameValue{b}, a); }

}  // namespace graphlift::ir
