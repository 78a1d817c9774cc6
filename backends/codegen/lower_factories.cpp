// Owns: lowering of tensors that are made from numbers.
#include "backends/codegen/lower_rule.h"

namespace graphlift::codegen {
namespace {

Expr filled(LowerCall& call, Value number) {
  const Value value = call.graph.expand(number, call.out().sizes);
  return {&call.graph, call.graph.map(Prim::Copy, {value})};
}

template <int value>
bool constant(LowerCall& call) {
  const auto type = compute_type(call.out().dtype);
  return type && call.give(filled(call, call.graph.number(static_cast<double>(value), *type)));
}

// The fill value is argument `at`.
template <size_t at>
bool full(LowerCall& call) {
  if (call.is_tensor(at) || !compute_type(call.out().dtype) || !call.fits(at, call.out().dtype)) return false;
  return call.give(filled(call, call.operand(at, call.out().dtype).value()));
}

bool fill_tensor(LowerCall& call) { return call.give(filled(call, call.operand(1, call.out().dtype).value())); }

// start, end, step as arguments `first` on; whole numbers only, since eager rounds others in double.
bool arange(LowerCall& call, const ir::Sym& start, const ir::Sym& step) {
  const auto type = compute_type(call.out().dtype);
  const Expr index(&call.graph, call.graph.iota(call.out().sizes, 0));
  return call.give((index * index.number(step) + index.number(start)).cast(*type));
}

bool arange_end(LowerCall& call) { return call.node.args[0].sym() && arange(call, 0, 1); }
bool arange_start(LowerCall& call) {
  return call.node.args[0].sym() && call.node.args[1].sym() && arange(call, call.sym(0), 1);
}
bool arange_step(LowerCall& call) {
  return call.node.args[0].sym() && call.node.args[1].sym() && call.node.args[2].sym() &&
         arange(call, call.sym(0), call.sym(2));
}

constexpr LowerRow kLowerFactories[] = {
    GL_LOWER("zeros", "default", constant<0>),     GL_LOWER("zeros_like", "default", constant<0>),
    GL_LOWER("new_zeros", "default", constant<0>), GL_LOWER("ones", "default", constant<1>),
    GL_LOWER("ones_like", "default", constant<1>), GL_LOWER("new_ones", "default", constant<1>),
    GL_LOWER("full", "default", full<1>),          GL_LOWER("full_like", "default", full<1>),
    GL_LOWER("new_full", "default", full<2>),      GL_LOWER("scalar_tensor", "default", full<0>),
    GL_LOWER("fill", "Scalar", full<1>),           GL_LOWER("fill", "Tensor", fill_tensor),
    GL_LOWER("arange", "default", arange_end),     GL_LOWER("arange", "start", arange_start),
    GL_LOWER("arange", "start_step", arange_step),
};

}  // namespace

std::span<const LowerRow> lower_factories_rows() { return kLowerFactories; }

}  // namespace graphlift::codegen
