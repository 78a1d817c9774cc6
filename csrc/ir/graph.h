// Owns: the graph: an ordered SSA list of aten-level calls over tensors, with typed results and the user's source lines.
// Must not: know torch, Python objects, or how an operator computes.
#pragma once

#include <complex>
#include <deque>
#include <list>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "ir/sym.h"
#include "ir/type.h"

namespace graphlift::ir {

struct Node;

// Output `index` of `node`. Most nodes have one output.
struct ValueRef {
  Node* node = nullptr;
  int index = 0;
  bool operator==(const ValueRef&) const = default;
};

struct Arg;
using ArgList = std::vector<Arg>;

struct None {
  bool operator==(const None&) const = default;
};
struct Layout { int8_t number; bool operator==(const Layout&) const = default; };
struct MemoryFormat { int8_t number; bool operator==(const MemoryFormat&) const = default; };

// One argument of a call: a value, or something known when the graph was made. A symbolic int is Sym.
struct Arg : std::variant<None, ValueRef, Sym, double, bool, std::complex<double>, std::string, DType, Device, Layout,
                          MemoryFormat, ArgList> {
  using variant::variant;
  bool is_none() const { return std::holds_alternative<None>(*this); }
  const ValueRef* value() const { return std::get_if<ValueRef>(this); }
  const Sym* sym() const { return std::get_if<Sym>(this); }
  const ArgList* list() const { return std::get_if<ArgList>(this); }
};

// Interned operator name with overload: "aten::add.Tensor", "aten::mm.default". Compared by pointer.
class Op {
 public:
  Op() = default;
  explicit Op(std::string_view full_name);
  std::string_view str() const { return *name_; }
  bool operator==(const Op&) const = default;

 private:
  const std::string* name_ = nullptr;
};

struct SourceLine {
  std::string file;
  int line = 0;
  std::string function;
};

enum class NodeKind : uint8_t {
  Input,   // a graph input; `input_name` says which
  Call,    // an operator call
  SymCall, // reserved for scalars computed at run time from tensor data
};

struct Node {
  int id = 0;  // position-independent, unique in the graph; printed as %id
  NodeKind kind = NodeKind::Call;
  Op op;                          // Call
  std::string input_name;         // Input: "x", "tangent0"
  ArgList args;                   // Call: every argument of the schema, positional then keyword-only, defaults filled in
  std::vector<std::optional<TensorType>> outputs;  // nullopt: an undefined tensor or a non-tensor output
  SourceLine where;
  bool backward = false;          // recorded while the autograd engine ran
  bool must_recompute = false;    // made again in backward by the user's checkpoint
};

class Graph {
 public:
  Node* add_input(std::string name, TensorType type);
  Node* add_call(Op op, ArgList args, std::vector<std::optional<TensorType>> outputs, SourceLine where = {});
  // Inserts before `position`; used by passes.
  Node* insert_call(Node* position, Op op, ArgList args, std::vector<std::optional<TensorType>> outputs);
  void erase(Node* node);  // precondition: no use of it is left
  void replace_uses(ValueRef from, ValueRef to);

  std::list<Node>& nodes() { return nodes_; }
  const std::list<Node>& nodes() const { return nodes_; }
  const std::vector<Node*>& inputs() const { return inputs_; }
  ArgList& outputs() { return outputs_; }
  const ArgList& outputs() const { return outputs_; }
  Node* find(int id);
  std::unique_ptr<Graph> clone() const;
  const TensorType& type(ValueRef value) const;

 private:
  std::list<Node> nodes_;        // program order; addresses are stable
  std::vector<Node*> inputs_;
  ArgList outputs_;
  int next_id_ = 0;
};

// Calls `visit(ValueRef&)` for each value in the argument, lists included.
template <class Visit>
void for_each_value(Arg& arg, Visit&& visit) {
  if (auto* value = std::get_if<ValueRef>(&arg)) visit(*value);
  if (auto* list = std::get_if<ArgList>(&arg))
    for (Arg& item : *list) for_each_value(item, visit);
}
template <class Visit>
void for_each_value(const Arg& arg, Visit&& visit) {
  if (auto* value = std::get_if<ValueRef>(&arg)) visit(*value);
  if (auto* list = std::get_if<ArgList>(&arg))
    for (const Arg& item : *list) for_each_value(item, visit);
}

std::string print(const Graph& graph);                     // text form, see print.cpp for the grammar
std::unique_ptr<Graph> parse(std::string_view text);       // throws ParseError with line and column
// Empty when well formed, else what is wrong: uses before definitions, missing types, duplicate ids, foreign nodes.
std::string verify(const Graph& graph);

}  // namespace graphlift::ir
