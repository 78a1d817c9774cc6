// Owns: lowering of operators over one tensor, element by element.
#include <cmath>

#include "backends/codegen/lower_rule.h"

namespace graphlift::codegen {
namespace {

using ir::DType;

// Computed in the type of the result: sqrt of ints gives floats.
template <Prim prim>
bool unary(LowerCall& call) {
  return call.give(apply(prim, call.operand(0, call.out().dtype)));
}

// Whole numbers are their own floor.
template <Prim prim>
bool rounding(LowerCall& call) {
  const Expr x = call.operand(0, call.out().dtype);
  return call.give(apply(ir::is_floating(x.type()) ? prim : Prim::Copy, x));
}

template <Expr (*formula)(const Expr&)>
bool composed(LowerCall& call) {
  return call.give(formula(call.operand(0, call.out().dtype)));
}

Expr absolute(const Expr& x) {
  return apply(x.type() == DType::uint8 || x.type() == DType::bool_ ? Prim::Copy : Prim::Abs, x);
}
Expr reciprocal(const Expr& x) { return 1.0 / x; }
Expr rsqrt(const Expr& x) { return 1.0 / apply(Prim::Sqrt, x); }
Expr sgn(const Expr& x) {
  if (x.type() == DType::bool_) return apply(Prim::Copy, x);
  const Expr zero = x.number(0.0);
  return (x > zero).cast(x.type()) - (x < zero).cast(x.type());
}
Expr frac(const Expr& x) { return x - apply(Prim::Trunc, x); }
Expr relu(const Expr& x) { return apply(Prim::Max, x, x.number(0.0)); }
Expr deg2rad(const Expr& x) { return x * 0.017453292519943295; }
Expr rad2deg(const Expr& x) { return x * 57.29577951308232; }

bool is_nan(LowerCall& call) {
  const Expr x = call.tensor(0);
  return call.give(x != x);
}

bool is_infinite(LowerCall& call) {
  const Expr x = call.tensor(0);
  if (!ir::is_floating(x.type())) return false;
  return call.give(apply(Prim::Abs, x) == x.number(INFINITY));
}

bool logical_not(LowerCall& call) {
  const Expr x = call.tensor(0);
  return call.give(x == x.number(0.0));
}

// self, nan, posinf, neginf.
bool nan_to_num(LowerCall& call) {
  const DType dtype = call.out().dtype;
  if (dtype != DType::float32 && dtype != DType::float64) return false;
  const double largest = dtype == DType::float32 ? 3.4028234663852886e38 : 1.7976931348623157e308;
  const Expr x = call.operand(0, dtype);
  auto given = [&](size_t i, double otherwise) { return x.number(call.none(i) ? otherwise : call.real(i)); };
  Expr result = select(x != x, given(1, 0), x);
  result = select(x == x.number(INFINITY), given(2, largest), result);
  return call.give(select(x == x.number(-INFINITY), given(3, -largest), result));
}

// self, dtype, layout, device, pin_memory, non_blocking, memory_format.
bool to_copy(LowerCall& call) {
  if (!(call.type(0).device == call.out().device)) return false;
  const DType dtype = call.out().dtype;
  const Expr x = call.operand(0, dtype);
  const Value rounded = call.graph.rounded(x.value(), dtype);
  if (rounded != x.value()) return call.give({&call.graph, rounded});
  return call.give(apply(Prim::Copy, x));
}

bool clone(LowerCall& call) { return call.give(apply(Prim::Copy, call.tensor(0))); }

// self, src, non_blocking: the new value of self.
bool copy(LowerCall& call) {
  if (!(call.type(1).device == call.out().device)) return false;
  const Expr x = call.operand(1, call.out().dtype);
  Value value = call.graph.rounded(x.value(), call.out().dtype);
  value = call.graph.map(Prim::Copy, {call.graph.expand(value, call.out().sizes)});
  return call.give({&call.graph, value});
}

constexpr LowerRow kLowerUnary[] = {
    GL_LOWER("exp", "default", unary<Prim::Exp>),
    GL_LOWER("exp2", "default", unary<Prim::Exp2>),
    GL_LOWER("expm1", "default", unary<Prim::Expm1>),
    GL_LOWER("log", "default", unary<Prim::Log>),
    GL_LOWER("log2", "default", unary<Prim::Log2>),
    GL_LOWER("log10", "default", unary<Prim::Log10>),
    GL_LOWER("log1p", "default", unary<Prim::Log1p>),
    GL_LOWER("sqrt", "default", unary<Prim::Sqrt>),
    GL_LOWER("sin", "default", unary<Prim::Sin>),
    GL_LOWER("cos", "default", unary<Prim::Cos>),
    GL_LOWER("tan", "default", unary<Prim::Tan>),
    GL_LOWER("asin", "default", unary<Prim::Asin>),
    GL_LOWER("acos", "default", unary<Prim::Acos>),
    GL_LOWER("atan", "default", unary<Prim::Atan>),
    GL_LOWER("sinh", "default", unary<Prim::Sinh>),
    GL_LOWER("cosh", "default", unary<Prim::Cosh>),
    GL_LOWER("tanh", "default", unary<Prim::Tanh>),
    GL_LOWER("asinh", "default", unary<Prim::Asinh>),
    GL_LOWER("acosh", "default", unary<Prim::Acosh>),
    GL_LOWER("atanh", "default", unary<Prim::Atanh>),
    GL_LOWER("erf", "default", unary<Prim::Erf>),
    GL_LOWER("erfc", "default", unary<Prim::Erfc>),
    GL_LOWER("sigmoid", "default", unary<Prim::Sigmoid>),
    GL_LOWER("neg", "default", unary<Prim::Neg>),
    GL_LOWER("bitwise_not", "default", unary<Prim::Not>),
    GL_LOWER("floor", "default", rounding<Prim::Floor>),
    GL_LOWER("ceil", "default", rounding<Prim::Ceil>),
    GL_LOWER("trunc", "default", rounding<Prim::Trunc>),
    GL_LOWER("round", "default", rounding<Prim::Round>),
    GL_LOWER("abs", "default", composed<absolute>),
    GL_LOWER("reciprocal", "default", composed<reciprocal>),
    GL_LOWER("rsqrt", "default", composed<rsqrt>),
    GL_LOWER("sign", "default", composed<sgn>),
    GL_LOWER("sgn", "default", composed<sgn>),
    GL_LOWER("frac", "default", composed<frac>),
    GL_LOWER("relu", "default", composed<relu>),
    GL_LOWER("deg2rad", "default", composed<deg2rad>),
    GL_LOWER("rad2deg", "default", composed<rad2deg>),
    GL_LOWER("isnan", "default", is_nan),
    GL_LOWER("isinf", "default", is_infinite),
    GL_LOWER("logical_not", "default", logical_not),
    GL_LOWER("nan_to_num", "default", nan_to_num),
    GL_LOWER("_to_copy", "default", to_copy),
    GL_LOWER("clone", "default", clone),
    GL_LOWER("lift_fresh_copy", "default", clone),
    GL_LOWER("copy", "default", copy),
};

}  // namespace

std::span<const LowerRow> lower_unary_rows() { return kLowerUnary; }

}  // namespace graphlift::codegen
