// Owns: the text form of graphs. parse.cpp reads it back to an equal graph.
// Must not: lose anything of a node.
//
//   graph   = node* "return" "(" [arg {"," arg}] ")"
//   node    = "%" id ":" types "=" (input | call) ["  #" file ":" line ["in" function]] newline
//   types   = type | "none" | "(" [type | "none" {"," ...}] ")"          several outputs, or no output, in parentheses
//   type    = dtype "[" sizes "]" "{" strides "}" ["@" "(" offset ")"] device ["grad"]
//   input   = "input" (name | string)                                    a string when the name is not one word
//   call    = ["sym"] operator "(" [arg {"," arg}] ")" ["backward"] ["recompute"]
//   arg     = "none" | "true" | "false" | value | sym | double | complex | string | dtype | device | layout | format |
//   list value   = "%" id ["." output]                                        output 0 of a node with one output: no
//   suffix sym     = Python's int expressions over s0, s1, ..., + - * // %, min(a, b), max(a, b) double  = has a point,
//   an exponent, or is inf, -inf, nan             complex = "complex(" double "," double ")" dtype   = torch's name; as
//   a type, the short one: f32, bf16, i64, u8, c64, bool, f8_e5m2 device  = "device(cuda:0)"    layout =
//   "layout(strided)"    format = "memory_format(channels_last)"
//
//   %0: f32[s0, 8]{8, 1} cpu = input x
//   %3: f32[s0, 8]{8, 1} cpu = aten::add.Tensor(%0, %0, 1)  # file.py:12 in forward
//   return (%3)
#include <charconv>
#include <cmath>

#include "ir/graph.h"
#include "ir/text.h"

namespace graphlift::ir {
namespace {

std::string text(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  char buffer[32];
  auto end = std::to_chars(buffer, buffer + sizeof buffer, value).ptr;
  std::string shortest(buffer, end);
  return shortest.find_first_of(".e") == std::string::npos ? shortest + ".0" : shortest;
}

template <class Number>
std::string named(const char* kind, Number number, std::span<const std::string_view> names) {
  bool known = number >= 0 && static_cast<size_t>(number) < names.size();
  return std::string(kind) + "(" + (known ? std::string(names[number]) : std::to_string(number)) + ")";
}

std::string join(const ArgList& args) {
  std::string result;
  for (const Arg& arg : args) {
    if (!result.empty()) result += ", ";
    result += print(arg);
  }
  return result;
}

struct ArgText {
  std::string operator()(None) const { return "none"; }
  std::string operator()(const ValueRef& value) const {
    if (!value.node) return "%null";
    std::string id = "%" + std::to_string(value.node->id);
    bool single = value.node->outputs.size() == 1 && value.index == 0;
    return single ? id : id + "." + std::to_string(value.index);
  }
  std::string operator()(const Sym& sym) const { return sym.str(); }
  std::string operator()(double value) const { return text(value); }
  std::string operator()(bool value) const { return value ? "true" : "false"; }
  std::string operator()(const std::complex<double>& value) const {
    return "complex(" + text(value.real()) + ", " + text(value.imag()) + ")";
  }
  std::string operator()(const std::string& value) const { return quote(value); }
  std::string operator()(DType dtype) const { return std::string(name(dtype)); }
  std::string operator()(const Device& device) const { return "device(" + device.str() + ")"; }
  std::string operator()(Layout layout) const { return named("layout", layout.number, kLayouts); }
  std::string operator()(MemoryFormat format) const { return named("memory_format", format.number, kMemoryFormats); }
  std::string operator()(const ArgList& list) const { return "[" + join(list) + "]"; }
};

std::string text(const std::optional<TensorType>& type) { return type ? type->str() : "none"; }

std::string types(const Node& node) {
  if (node.outputs.size() == 1) return text(node.outputs[0]);
  std::string result;
  for (const auto& type : node.outputs) {
    if (!result.empty()) result += ", ";
    result += text(type);
  }
  return "(" + result + ")";
}

}  // namespace

std::string quote(std::string_view value) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string result = "\"";
  for (char c : value) {
    auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      result += {'\\', c};
    } else if (c == '\n') {
      result += "\\n";
    } else if (byte < 0x20 || byte == 0x7f) {
      result += {'\\', 'x', kDigits[byte >> 4], kDigits[byte & 15]};
    } else {
      result += c;
    }
  }
  return result + "\"";
}

bool is_word(std::string_view text) {
  if (text.empty()) return false;
  for (char c : text)
    if (!is_word_character(c)) return false;
  return true;
}

std::string print(const Arg& arg) { return std::visit(ArgText{}, arg); }

std::string print(const Node& node) {
  std::string line = "%" + std::to_string(node.id) + ": " + types(node) + " = ";
  if (node.kind == NodeKind::Input) {
    line += "input " + (is_word(node.input_name) ? node.input_name : quote(node.input_name));
  } else {
    line += node.kind == NodeKind::SymCall ? "sym " : "";
    line += std::string(node.op.str()) + "(" + join(node.args) + ")";
    if (node.backward) line += " backward";
    if (node.must_recompute) line += " recompute";
    if (node.checkpoint) line += " checkpoint " + std::to_string(node.checkpoint);
  }
  if (!node.where.file.empty()) {
    line += "  # " + node.where.file + ":" + std::to_string(node.where.line);
    if (!node.where.function.empty()) line += " in " + node.where.function;
  }
  return line;
}

std::string print(const Graph& graph) {
  std::string result;
  for (const Node& node : graph.nodes()) result += print(node) + "\n";
  return result + "return (" + join(graph.outputs()) + ")\n";
}

}  // namespace graphlift::ir
