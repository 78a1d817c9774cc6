// Owns: lowering of _foreach_ operators: the single operator's rule, item by item. Must not: hold rules of its own for
// one tensor.
#include <algorithm>

#include "backends/codegen/lower_rule.h"

namespace graphlift::codegen {
namespace {

// A string as a template argument.
template <size_t N>
struct Name {
  constexpr Name(const char (&text)[N]) { std::copy_n(text, N, value); }  // NOLINT: implicit on purpose
  char value[N];
};

// Arguments that the single operator has in addition.
enum class More : uint8_t { Nothing, Alpha };

// The call for item `i`: lists give their item, everything else stays.
ir::Node single_call(const ir::Node& node, ir::Op op, size_t i, More more) {
  ir::Node single;
  single.op = op;
  for (const ir::Arg& arg : node.args) single.args.push_back(arg.list() ? (*arg.list())[i] : arg);
  if (more == More::Alpha) single.args.emplace_back(int64_t{1});
  single.outputs = {node.outputs[i]};
  return single;
}

template <Name Single, More M = More::Nothing>
bool each(LowerCall& call) {
  static const ir::Op op(Single.value);
  static const LowerRow* row = find_lowering(op);
  for (const ir::Arg& arg : call.node.args)
    if (arg.list() && arg.list()->size() != call.node.outputs.size()) return false;
  for (size_t i = 0; i < call.node.outputs.size(); ++i) {
    const ir::Node node = single_call(call.node, op, i, M);
    LowerCall single{node, call.graph, call.read};
    if (!row || !node.outputs[0] || !row->rule(single)) return false;
    call.results.push_back(single.results.at(0));
  }
  return true;
}

#define EACH(name, overload, single, ...) \
  GL_LOWER("_foreach_" name, overload, (each<"aten::" single __VA_OPT__(, ) __VA_ARGS__>))
#define UNARY(name) EACH(name, "default", name ".default")
#define SCALARS(name, single, ...) \
  EACH(name, "Scalar", single __VA_OPT__(, ) __VA_ARGS__), EACH(name, "ScalarList", single __VA_OPT__(, ) __VA_ARGS__)

constexpr LowerRow kRows[] = {
    UNARY("abs"),
    UNARY("exp"),
    UNARY("neg"),
    UNARY("reciprocal"),
    UNARY("rsqrt"),
    UNARY("sigmoid"),
    UNARY("sign"),
    UNARY("sqrt"),
    UNARY("tanh"),
    EACH("add", "List", "add.Tensor"),
    EACH("add", "Tensor", "add.Tensor"),
    SCALARS("add", "add.Scalar", More::Alpha),
    EACH("sub", "List", "sub.Tensor"),
    SCALARS("sub", "sub.Scalar", More::Alpha),
    EACH("mul", "List", "mul.Tensor"),
    EACH("mul", "Tensor", "mul.Tensor"),
    SCALARS("mul", "mul.Scalar"),
    EACH("div", "List", "div.Tensor"),
    EACH("div", "Tensor", "div.Tensor"),
    SCALARS("div", "div.Scalar"),
    EACH("clamp_min", "List", "clamp_min.Tensor"),
    SCALARS("clamp_min", "clamp_min.default"),
    EACH("clamp_max", "List", "clamp_max.Tensor"),
    SCALARS("clamp_max", "clamp_max.default"),
    EACH("maximum", "List", "clamp_min.Tensor"),
    SCALARS("maximum", "clamp_min.default"),
    EACH("minimum", "List", "clamp_max.Tensor"),
    SCALARS("minimum", "clamp_max.default"),
    SCALARS("addcmul", "addcmul.default"),
    SCALARS("addcdiv", "addcdiv.default"),
    EACH("lerp", "List", "lerp.Tensor"),
    SCALARS("lerp", "lerp.Scalar"),
};

}  // namespace

std::span<const LowerRow> lower_foreach_rows() { return kRows; }

}  // namespace graphlift::codegen
