// Owns: reading the text form of graphs (print.cpp's head has the grammar).
// Must not: check more than the grammar and that values exist; verify.cpp does that.
#include <charconv>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "ir/graph.h"
#include "ir/scanner.h"
#include "ir/text.h"

namespace graphlift::ir {

class GraphReader {
 public:
  explicit GraphReader(std::string_view text) : scan_(text) {}

  std::unique_ptr<Graph> graph() {
    graph_ = std::make_unique<Graph>();
    scan_.skip_lines();
    while (scan_.peek() == '%') {
      node();
      scan_.skip_lines();
    }
    scan_.expect("return");
    scan_.expect("(");
    graph_->outputs_ = args(')');
    scan_.skip_lines();
    if (!scan_.at_end()) scan_.fail("text after the return line");
    return std::move(graph_);
  }

  TensorType whole_type() {
    TensorType result = type();
    if (!scan_.at_end()) scan_.fail("text after the type");
    return result;
  }

  Sym whole_sym() {
    Sym result = sum();
    if (!scan_.at_end()) scan_.fail("text after the expression");
    return result;
  }

 private:
  // --- nodes ---

  void node() {
    scan_.expect("%");
    Node node;
    node.id = static_cast<int>(scan_.integer());
    if (by_id_.count(node.id)) scan_.fail("%" + std::to_string(node.id) + " is defined twice");
    scan_.expect(":");
    node.outputs = types();
    scan_.expect("=");
    std::string word = scan_.word();
    if (word == "input") {
      node.kind = NodeKind::Input;
      node.input_name = scan_.peek() == '"' ? scan_.quoted() : scan_.word();
    } else {
      if (word == "sym") {
        node.kind = NodeKind::SymCall;
        word = scan_.word();
      }
      node.op = Op(word);
      scan_.expect("(");
      node.args = args(')');
      node.backward = scan_.accept("backward");
      node.must_recompute = scan_.accept("recompute");
      if (scan_.accept("checkpoint")) node.checkpoint = scan_.integer();
    }
    if (scan_.peek() == '#') node.where = where();
    scan_.end_line();
    bool input = node.kind == NodeKind::Input;
    int id = node.id;
    Node* made = graph_->insert(graph_->nodes_.end(), std::move(node));
    by_id_[id] = made;
    if (input) graph_->inputs_.push_back(made);
  }

  // file ":" line; false when `text` does not read so.
  static bool file_and_line(const std::string& text, SourceLine* where) {
    size_t colon = text.rfind(':');
    if (colon == std::string::npos) return false;
    where->file = text.substr(0, colon);
    auto [end, error] = std::from_chars(text.data() + colon + 1, text.data() + text.size(), where->line);
    return error == std::errc() && end == text.data() + text.size();
  }

  SourceLine where() {
    std::string text = scan_.rest_of_line();
    SourceLine where;
    size_t in = text.rfind(" in ");
    if (in != std::string::npos && file_and_line(text.substr(0, in), &where)) {
      where.function = text.substr(in + 4);
    } else if (!file_and_line(text, &where)) {
      scan_.fail("a source line reads file:line");
    }
    return where;
  }

  std::vector<std::optional<TensorType>> types() {
    std::vector<std::optional<TensorType>> result;
    if (!scan_.accept("(")) {
      result.push_back(optional_type());
      return result;
    }
    if (scan_.accept(")")) return result;
    do result.push_back(optional_type());
    while (scan_.accept(","));
    scan_.expect(")");
    return result;
  }

  std::optional<TensorType> optional_type() {
    if (scan_.accept("none")) return std::nullopt;
    return type();
  }

  TensorType type() {
    TensorType result;
    std::string word = scan_.word();
    auto dtype = dtype_from_short_name(word);
    if (!dtype) scan_.fail("no dtype has the short name " + quote(word));
    result.dtype = *dtype;
    result.sizes = dims("[", "]");
    result.strides = dims("{", "}");
    if (scan_.accept("@")) {
      scan_.expect("(");
      result.offset = sum();
      scan_.expect(")");
    }
    result.device = device();
    result.requires_grad = scan_.accept("grad");
    return result;
  }

  Dims dims(const char* open, const char* close) {
    Dims result;
    scan_.expect(open);
    if (scan_.accept(close)) return result;
    do result.push_back(sum());
    while (scan_.accept(","));
    scan_.expect(close);
    return result;
  }

  Device device() {
    std::string word = scan_.word();
    auto device = device_from_name(word);
    if (!device) scan_.fail("no device has the name " + quote(word));
    return *device;
  }

  // --- arguments ---

  ArgList args(char close) {
    ArgList result;
    if (scan_.accept(std::string(1, close))) return result;
    do result.push_back(arg());
    while (scan_.accept(","));
    scan_.expect(std::string(1, close));
    return result;
  }

  Arg arg() {
    if (scan_.peek() == '%') return value();
    if (scan_.peek() == '"') return scan_.quoted();
    if (scan_.accept("[")) return args(']');
    if (auto number = scan_.floating()) return *number;
    if (auto word = scan_.peek_word(); !word.empty())
      if (auto named = named_arg(word)) return *named;
    return sum();
  }

  Arg value() {
    scan_.expect("%");
    auto found = by_id_.find(static_cast<int>(scan_.integer()));
    if (found == by_id_.end()) scan_.fail("a value that no line before defines");
    Node* node = found->second;
    int index = scan_.accept_adjacent('.') ? static_cast<int>(scan_.integer()) : 0;
    if (static_cast<size_t>(index) >= node->outputs.size()) scan_.fail("the node has fewer outputs");
    return ValueRef{node, index};
  }

  // Arguments that begin with a word of their own. None: a symbolic integer.
  std::optional<Arg> named_arg(const std::string& word) {
    static const std::pair<std::string_view, Arg> kConstants[] = {
        {"none", Arg(None{})}, {"true", Arg(true)}, {"false", Arg(false)}};
    for (const auto& [name, arg] : kConstants)
      if (word == name) return scan_.word(), arg;
    if (auto dtype = dtype_from_name(word)) return scan_.word(), Arg(*dtype);
    if (word == "undefined") return scan_.word(), Arg(DType::undefined);
    if (word != "device" && word != "layout" && word != "memory_format" && word != "complex") return std::nullopt;
    scan_.word();
    scan_.expect("(");
    Arg result;
    if (word == "device") result = device();
    if (word == "layout") result = Layout{number_of(kLayouts)};
    if (word == "memory_format") result = MemoryFormat{number_of(kMemoryFormats)};
    if (word == "complex") result = complex();
    scan_.expect(")");
    return result;
  }

  int8_t number_of(std::span<const std::string_view> names) {
    std::string word = scan_.word();
    int number = 0;
    for (; static_cast<size_t>(number) < names.size(); ++number)
      if (names[number] == word) return static_cast<int8_t>(number);
    auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number);
    if (error != std::errc() || end != word.data() + word.size()) scan_.fail("an unknown name " + quote(word));
    return static_cast<int8_t>(number);
  }

  std::complex<double> complex() {
    auto real = scan_.floating();
    if (!real) scan_.fail("complex() takes two doubles");
    scan_.expect(",");
    auto imaginary = scan_.floating();
    if (!imaginary) scan_.fail("complex() takes two doubles");
    return {*real, *imaginary};
  }

  // --- symbolic integers: sum = product {(+|-) product}, product = unary {(*|//|%) unary} ---

  Sym sum() {
    Sym result = product();
    while (true) {
      if (scan_.accept("+")) {
        result = result + product();
      } else if (scan_.accept("-")) {
        // The lowest integer has no positive twin.
        result = scan_.accept("9223372036854775808") ? result + Sym(INT64_MIN) : result - product();
      } else {
        return result;
      }
    }
  }

  Sym product() {
    Sym result = unary();
    while (true) {
      if (scan_.accept("*")) {
        result = result * unary();
      } else if (scan_.accept("//")) {
        result = floordiv(result, divisor());
      } else if (scan_.accept("%")) {
        result = mod(result, divisor());
      } else {
        return result;
      }
    }
  }

  Sym divisor() {
    Sym value = unary();
    if (value.is_constant() && value.constant() == 0) scan_.fail("division by zero");
    return value;
  }

  Sym unary() {
    if (scan_.accept("-")) return scan_.accept("9223372036854775808") ? Sym(INT64_MIN) : -unary();
    if (scan_.accept("(")) {
      Sym result = sum();
      scan_.expect(")");
      return result;
    }
    if (std::isdigit(static_cast<unsigned char>(scan_.peek()))) return Sym(scan_.integer());
    std::string word = scan_.word();
    if (word == "min" || word == "max") {
      scan_.expect("(");
      Sym a = sum();
      scan_.expect(",");
      Sym b = sum();
      scan_.expect(")");
      return word == "min" ? min(a, b) : max(a, b);
    }
    SymbolId id = -1;
    if (word[0] == 's') {
      auto [end, error] = std::from_chars(word.data() + 1, word.data() + word.size(), id);
      if (error == std::errc() && end == word.data() + word.size() && id >= 0) return Sym::symbol(id);
    }
    scan_.fail("not an argument: " + quote(word));
  }

  Scanner scan_;
  std::unique_ptr<Graph> graph_;
  std::unordered_map<int, Node*> by_id_;
};

std::unique_ptr<Graph> parse(std::string_view text) { return GraphReader(text).graph(); }
TensorType parse_type(std::string_view text) { return GraphReader(text).whole_type(); }
Sym parse_sym(std::string_view text) { return GraphReader(text).whole_sym(); }

}  // namespace graphlift::ir
