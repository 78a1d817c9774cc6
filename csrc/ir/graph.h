// Owns: the graph: an ordered SSA list of aten-level calls over tensors, with typed results and the user's source
// lines. Must not: know torch, Python objects, or how an operator computes.
#pragma once

#include <complex>
#include <concepts>
#include <deque>
#include <list>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <unordered_map>
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

struct ValueHash {
  size_t operator()(const ValueRef& value) const {
    return std::hash<const void*>()(value.node) * 31 + static_cast<size_t>(value.index);
  }
};

struct Arg;
using ArgList = std::vector<Arg>;

struct None {
  bool operator==(const None&) const = default;
};
struct Layout {
  int8_t number;
  bool operator==(const Layout&) const = default;
};
struct MemoryFormat {
  int8_t number;
  bool operator==(const MemoryFormat&) const = default;
};

// One argument of a call: a value, or something known when the graph was made. A symbolic int is Sym.
struct Arg : std::variant<None, ValueRef, Sym, double, bool, std::complex<double>, std::string, DType, Device, Layout,
                          MemoryFormat, ArgList> {
  using variant::variant;
  template <std::integral Int>
    requires(!std::same_as<Int, bool>)
  Arg(Int value) : variant(Sym(value)) {}  // NOLINT: implicit as for the other alternatives
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
  std::string_view str() const { return name_ ? std::string_view(*name_) : std::string_view(); }
  const void* key() const { return name_; }  // for hash tables; null: no operator
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
  Input,    // a graph input; `input_name` says which
  Call,     // an operator call
  SymCall,  // reserved for scalars computed at run time from tensor data
};

struct Node {
  int id = 0;  // position-independent, unique in the graph; printed as %id
  NodeKind kind = NodeKind::Call;
  Op op;                   // Call
  std::string input_name;  // Input: "x", "tangent0"
  ArgList args;            // Call: every argument of the schema, positional then keyword-only, defaults filled in
  std::vector<std::optional<TensorType>> outputs;  // nullopt: an undefined tensor or a non-tensor output
  SourceLine where;
  bool backward = false;        // recorded while the autograd engine ran
  bool must_recompute = false;  // made again in backward by the user's checkpoint
  int64_t checkpoint = 0;       // not 0: the user's checkpoint that it belongs to, whose inner values are not saved
};

// Nodes come and go through these functions alone. Inputs stand before all calls, whenever they are added.
class Graph {
 public:
  Graph() = default;
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  Node* add_input(std::string name, TensorType type);
  Node* add_call(Op op, ArgList args, std::vector<std::optional<TensorType>> outputs, SourceLine where = {});
  // Inserts before `position` (a call; null: at the end); used by passes. Source line and flags are the caller's to
  // copy.
  Node* insert_call(Node* position, Op op, ArgList args, std::vector<std::optional<TensorType>> outputs);
  void erase(Node* node);  // precondition: no use of it is left
  void replace_uses(ValueRef from, ValueRef to);

  std::list<Node>& nodes() { return nodes_; }
  const std::list<Node>& nodes() const { return nodes_; }
  const std::vector<Node*>& inputs() const { return inputs_; }
  ArgList& outputs() { return outputs_; }
  const ArgList& outputs() const { return outputs_; }
  Node* find(int id);
  std::unique_ptr<Graph> clone() const;  // ids are kept
  const TensorType& type(ValueRef value) const;

 private:
  std::list<Node> nodes_;  // program order; addresses are stable
  std::unordered_map<const Node*, std::list<Node>::iterator> positions_;
  std::vector<Node*> inputs_;
  ArgList outputs_;
  int next_id_ = 0;
  friend class GraphReader;  // parse(): keeps the ids of the text

  Node* insert(std::list<Node>::iterator before, Node node);
};

// The type of a value that has one.
const TensorType& type_of(ValueRef value);
// An int or a float that is `number`.
bool is_number(const Arg& arg, int64_t number);
// One more than the highest symbol in arguments and types.
size_t symbol_count(const Graph& graph);
size_t symbol_count(const TensorType& type);

// The same value or the same constant. NaN equals NaN; a double never equals an int.
bool same(const Arg& a, const Arg& b);

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

class ParseError : public std::runtime_error {
 public:
  ParseError(const std::string& message, int line, int column)
      : std::runtime_error("line " + std::to_string(line) + ", column " + std::to_string(column) + ": " + message),
        line(line),
        column(column) {}
  int line, column;  // from 1
};

std::string print(const Graph& graph);                // text form, see print.cpp for the grammar
std::unique_ptr<Graph> parse(std::string_view text);  // throws ParseError with line and column
// One argument or one node as in print(); for messages.
std::string print(const Arg& arg);
std::string print(const Node& node);
TensorType parse_type(std::string_view text);
Sym parse_sym(std::string_view text);
// Empty when well formed, else what is wrong: uses before definitions, missing types, duplicate ids, foreign nodes.
std::string verify(const Graph& graph);

}  // namespace graphlift::ir
