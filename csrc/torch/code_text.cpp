// Owns: see code_text.h.
#include "torch/code_text.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <unordered_map>

#include "base/text.h"
#include "torch/convert.h"

namespace graphlift::torch_layer {
namespace {

constexpr std::string_view kLayouts[] = {"strided",    "sparse_coo", "sparse_csr", "_mkldnn",
                                         "sparse_csc", "sparse_bsr", "sparse_bsc", "jagged"};
constexpr std::string_view kMemoryFormats[] = {"contiguous_format", "preserve_format", "channels_last",
                                               "channels_last_3d"};
// What the code itself needs, and what can't be a name.
constexpr const char* kReserved[] = {"torch", "float",  "complex", "min",  "max",    "and", "as",   "def",  "del",
                                     "for",   "from",   "if",      "in",   "is",     "or",  "not",  "with", "lambda",
                                     "class", "global", "return",  "None", "import", "_",   "True", "False"};

// Called for the symbols of a type or argument.
void symbols_in(const ir::Arg& arg, std::vector<ir::SymbolId>* out) {
  if (const ir::Sym* sym = arg.sym()) sym->collect(out);
  if (const ir::ArgList* list = arg.list())
    for (const ir::Arg& item : *list) symbols_in(item, out);
}

class Writer {
 public:
  Writer(const ir::Graph& graph, const LineText& line_text) : graph_(graph), line_text_(line_text) {
    used_.insert(std::begin(kReserved), std::end(kReserved));
  }

  std::string write() {
    std::string body;
    std::vector<std::string> parameters = symbols();
    for (const ir::Node* input : graph_.inputs())
      parameters.push_back(define(*input, 0, input->input_name) + annotation(*input));
    for (const ir::Node& node : graph_.nodes()) {
      if (node.kind == ir::NodeKind::Input) continue;
      if (node.op == ir::Op("graphlift::constant"))
        parameters.push_back(define(node, 0, "constant" + node.args.at(0).sym()->str()) + annotation(node));
      else
        body += source(node) + call(node);
    }
    std::string outputs;
    for (const ir::Arg& output : graph_.outputs()) outputs += text(output) + ", ";
    return cat("def forward(", join(parameters, ", "), "):\n", body, "    return (", stripped(outputs), ")\n");
  }

 private:
  // "a, b, " -> "a, b,": a tuple also where there is one.
  static std::string stripped(std::string words) {
    if (!words.empty()) words.pop_back();
    return words;
  }

  std::vector<std::string> symbols() {
    std::vector<ir::SymbolId> ids;
    for (const ir::Node& node : graph_.nodes())
      for (const ir::Arg& arg : node.args) symbols_in(arg, &ids);
    std::sort(ids.begin(), ids.end());
    ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
    std::vector<std::string> names;
    for (ir::SymbolId id : ids) {
      names.push_back(ir::Sym::symbol(id).str());
      used_.insert(names.back());
    }
    return names;
  }

  std::string define(const ir::Node& node, size_t output, std::string wish) {
    for (char& c : wish)
      if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
    if (wish.empty() || std::isdigit(static_cast<unsigned char>(wish[0]))) wish = "_" + wish;
    std::string name = wish;
    for (int number = 1; !used_.insert(name).second; ++number) name = wish + "_" + std::to_string(number);
    auto& names = names_[&node];
    if (names.size() <= output) names.resize(output + 1);
    return names[output] = name;
  }

  static std::string annotation(const ir::Node& node) {
    return node.outputs.size() == 1 && node.outputs[0] ? ": \"" + node.outputs[0]->str() + "\"" : std::string();
  }

  std::string source(const ir::Node& node) {
    const ir::SourceLine& where = node.where;
    const std::string place = where.file.empty() ? "" : cat(where.file, ":", where.line, " in ", where.function);
    if (place == last_place_ || place.empty()) return {};
    last_place_ = place;
    const std::string line = line_text_ ? line_text_(where) : std::string();
    return cat("\n    # File: ", place, line.empty() ? "" : ", code: ", line, "\n");
  }

  std::string call(const ir::Node& node) {
    const std::string_view full = node.op.str();
    const size_t colons = full.find("::"), dot = full.rfind('.');
    const std::string space(full.substr(0, colons)), base(full.substr(colons + 2, dot - colons - 2));
    const std::string target = cat("torch.ops.", space, ".", base, ".", full.substr(dot + 1));
    // Its arguments first: names of results are of the lines below.
    const std::string right = cat(target, "(", arguments(node), ")");
    const auto& returns = find_operator(node.op).schema().returns();
    const bool alone = returns.size() == 1 && returns[0].type()->kind() == c10::TypeKind::TensorType;
    if (returns.empty()) return cat("    ", right, "\n");
    if (alone) {
      const std::string left = define(node, 0, base);
      return cat("    ", left, annotation(node), " = ", right, "\n");
    }
    return cat("    ", targets(node, base, returns), " = ", right, "\n");
  }

  // Names for several results. Results of one list follow each other among the node's outputs.
  std::string targets(const ir::Node& node, const std::string& base, const std::vector<c10::Argument>& returns) {
    const auto is_list = [](const c10::Argument& of) { return of.type()->kind() == c10::TypeKind::ListType; };
    const auto lists = static_cast<size_t>(std::count_if(returns.begin(), returns.end(), is_list));
    const size_t in_list = lists ? (node.outputs.size() - (returns.size() - lists)) / lists : 0;
    size_t output = 0;
    std::string words;
    for (const c10::Argument& of : returns) {
      std::string names;
      for (size_t i = 0; i < (is_list(of) ? in_list : 1); ++i) names += define(node, output++, base) + ", ";
      if (returns.size() == 1) return names.empty() ? "_" : stripped(names);
      words += is_list(of) ? cat("[", names, "], ") : names;
    }
    return stripped(words);
  }

  std::string arguments(const ir::Node& node) {
    const auto& parameters = find_operator(node.op).schema().arguments();
    size_t positional = 0;  // arguments behind the last that differs from its default are left out
    for (size_t i = 0; i < node.args.size() && i < parameters.size(); ++i)
      if (!parameters[i].kwarg_only() && !is_default(node.args[i], parameters[i])) positional = i + 1;
    std::vector<std::string> words;
    for (size_t i = 0; i < node.args.size() && i < parameters.size(); ++i) {
      if (!parameters[i].kwarg_only() && i < positional) words.push_back(text(node, node.args[i], parameters[i]));
      if (parameters[i].kwarg_only() && !is_default(node.args[i], parameters[i]))
        words.push_back(parameters[i].name() + "=" + text(node.args[i]));
    }
    return join(words, ", ");
  }

  // A few operators take a Python number where their schema says Tensor; the others get a tensor.
  static bool takes_numbers(std::string_view op) {
    static constexpr std::string_view kNames[] = {"add",    "sub",         "subtract",     "mul",  "multiply", "div",
                                                  "divide", "true_divide", "floor_divide", "copy", "_to_copy", "_conj"};
    const std::string_view base = op.substr(op.find("::") + 2, op.rfind('.') - op.find("::") - 2);
    return std::find(std::begin(kNames), std::end(kNames), base) != std::end(kNames);
  }

  std::string text(const ir::Node& node, const ir::Arg& arg, const c10::Argument& parameter) const {
    const c10::Type* type = parameter.type().get();
    while (type->kind() == c10::TypeKind::OptionalType) type = type->containedType(0).get();
    const bool number = std::holds_alternative<double>(arg) || std::holds_alternative<bool>(arg) ||
                        std::holds_alternative<std::complex<double>>(arg) || arg.sym();
    if (!number || type->kind() != c10::TypeKind::TensorType || takes_numbers(node.op.str())) return text(arg);
    const bool typed = std::holds_alternative<double>(arg) && !node.outputs.empty() && node.outputs[0] &&
                       ir::is_floating(node.outputs[0]->dtype);
    return cat("torch.tensor(", text(arg), typed ? cat(", dtype=torch.", ir::name(node.outputs[0]->dtype)) : "", ")");
  }

  static bool is_default(const ir::Arg& arg, const c10::Argument& parameter) {
    if (!parameter.default_value()) return false;
    auto no_tensor = [](const at::Tensor&) -> ir::Arg { return ir::None{}; };
    auto no_symbol = [](const c10::SymInt& value) -> ir::Sym { return value.guard_int(__FILE__, __LINE__); };
    return ir::same(arg, from_ivalue(*parameter.default_value(), *parameter.real_type(), no_tensor, no_symbol));
  }

  static std::string number(double value) {
    if (std::isnan(value)) return "float('nan')";
    if (std::isinf(value)) return value < 0 ? "float('-inf')" : "float('inf')";
    return ir::print(ir::Arg(value));
  }

  template <size_t N>
  static std::string named(const std::string_view (&names)[N], int index) {
    return cat("torch.", names[static_cast<size_t>(index)]);
  }

  std::string text(const ir::Arg& arg) const {
    if (arg.is_none()) return "None";
    if (const ir::ValueRef* value = arg.value()) return names_.at(value->node).at(static_cast<size_t>(value->index));
    if (const ir::ArgList* list = arg.list()) {
      std::vector<std::string> words;
      for (const ir::Arg& item : *list) words.push_back(text(item));
      return cat("[", join(words, ", "), "]");
    }
    if (const auto* flag = std::get_if<bool>(&arg)) return *flag ? "True" : "False";
    if (const auto* real = std::get_if<double>(&arg)) return number(*real);
    if (const auto* both = std::get_if<std::complex<double>>(&arg))
      return cat("complex(", number(both->real()), ", ", number(both->imag()), ")");
    if (const auto* dtype = std::get_if<ir::DType>(&arg)) return cat("torch.", ir::name(*dtype));
    if (const auto* device = std::get_if<ir::Device>(&arg)) return cat("torch.device('", device->str(), "')");
    if (const auto* layout = std::get_if<ir::Layout>(&arg)) return named(kLayouts, layout->number);
    if (const auto* format = std::get_if<ir::MemoryFormat>(&arg)) return named(kMemoryFormats, format->number);
    return ir::print(arg);  // symbolic ints and strings are written as in Python
  }

  const ir::Graph& graph_;
  const LineText& line_text_;
  std::set<std::string> used_;
  std::unordered_map<const ir::Node*, std::vector<std::string>> names_;
  std::string last_place_;
};

}  // namespace

std::string code_text(const ir::Graph& graph, const LineText& line_text) { return Writer(graph, line_text).write(); }

}  // namespace graphlift::torch_layer
