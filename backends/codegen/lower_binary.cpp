// Owns: lowering of operators over two or three tensors, element by element, by arithmetic.
#include "backends/codegen/lower_rule.h"

namespace graphlift::codegen {
namespace {

using ir::DType;

template <Prim prim>
bool binary(LowerCall& call) {
  const DType dtype = call.out().dtype;
  return call.give(apply(prim, call.operand(0, dtype), call.operand(1, dtype)));
}

// As eager stores it. Two ways to one 16-bit value, a saved one and one computed again, have to be equal: gradients of
// extremes divide by how many are.
Expr compared(const LowerCall& call, size_t i, DType dtype) {
  if (!call.is_tensor(i)) return call.operand(i, dtype);
  const Value value = call.tensor(i).value();
  const TensorNode* memory = value;
  while (memory->is_view()) memory = memory->args[0];
  const bool stored = memory->kind == TensorNode::Kind::Buffer;
  const Expr exact(&call.graph, stored ? value : call.graph.rounded(value, call.type(i).dtype));
  return exact.cast(*compute_type(dtype));
}

// In the type that the operands promote to; the result is a bool.
template <Prim prim>
bool comparison(LowerCall& call) {
  const auto dtype = call.common({0, 1});
  return dtype && call.give(apply(prim, compared(call, 0, *dtype), compared(call, 1, *dtype)));
}

template <Prim prim>
bool logical(LowerCall& call) {
  auto truth = [&](size_t i) {
    const Expr x = call.tensor(i);
    return x != x.number(0.0);
  };
  return call.give(apply(prim, truth(0), truth(1)));
}

Expr scaled(const LowerCall& call, size_t i, size_t factor, DType dtype) {
  const Expr x = call.operand(i, dtype);
  return ir::is_number(call.node.args[factor], 1) ? x : call.operand(factor, dtype) * x;
}

// self, other, alpha. Bools add as by or.
bool add(LowerCall& call) {
  const DType dtype = call.out().dtype;
  if (dtype == DType::bool_) return ir::is_number(call.node.args[2], 1) && binary<Prim::Or>(call);
  return call.give(call.operand(0, dtype) + scaled(call, 1, 2, dtype));
}

bool subtract(LowerCall& call) {
  const DType dtype = call.out().dtype;
  return call.give(call.operand(0, dtype) - scaled(call, 1, 2, dtype));
}

bool subtract_from(LowerCall& call) {
  const DType dtype = call.out().dtype;
  return call.give(call.operand(1, dtype) - scaled(call, 0, 2, dtype));
}

bool multiply(LowerCall& call) {
  return call.out().dtype == DType::bool_ ? binary<Prim::And>(call) : binary<Prim::Mul>(call);
}

// self, other, rounding_mode. Whole numbers by zero are for torch to refuse.
bool divide_rounding(LowerCall& call) {
  if (call.none(2)) return binary<Prim::Div>(call);
  const DType dtype = call.out().dtype;
  if (!ir::is_floating(dtype) || std::get<std::string>(call.node.args[2]) != "trunc") return false;
  return call.give(apply(Prim::Trunc, call.operand(0, dtype) / call.operand(1, dtype)));
}

bool float_modulo(LowerCall& call) { return ir::is_floating(call.out().dtype) && binary<Prim::Fmod>(call); }

// The sign of the divisor, as Python's %.
bool remainder(LowerCall& call) {
  const DType dtype = call.out().dtype;
  if (!ir::is_floating(dtype)) return false;
  const Expr a = call.operand(0, dtype), b = call.operand(1, dtype);
  const Expr m = apply(Prim::Fmod, a, b), zero = m.number(0.0);
  const Expr other_sign = apply(Prim::Xor, b < zero, m < zero);
  return call.give(select(apply(Prim::And, m != zero, other_sign), m + b, m));
}

// self, value1, value2, value.
bool add_product(LowerCall& call) {
  const DType dtype = call.out().dtype;
  const Expr product = scaled(call, 1, 3, dtype) * call.operand(2, dtype);
  return call.give(call.operand(0, dtype) + product);
}

bool add_quotient(LowerCall& call) {
  const DType dtype = call.out().dtype;
  if (!ir::is_floating(dtype)) return false;
  return call.give(call.operand(0, dtype) + scaled(call, 1, 3, dtype) / call.operand(2, dtype));
}

// self, end, weight: from the nearer end.
bool interpolate(LowerCall& call) {
  const DType dtype = call.out().dtype;
  const Expr a = call.operand(0, dtype), b = call.operand(1, dtype), w = call.operand(2, dtype);
  if (!ir::is_floating(a.type())) return false;
  return call.give(select(apply(Prim::Abs, w) < 0.5, a + w * (b - a), b - (b - a) * (1.0 - w)));
}

// Exponents that are products; others by the general function.
bool power_number(LowerCall& call) {
  const DType dtype = call.out().dtype;
  const Expr x = call.operand(0, dtype);
  const ir::Arg& arg = call.node.args[1];
  if (arg.sym() && !arg.sym()->is_constant()) return false;
  const double exponent = call.real(1);
  if (exponent == 2) return call.give(x * x);
  if (exponent == 3) return call.give(x * x * x);
  if (exponent == 1) return call.give(apply(Prim::Copy, x));
  if (!ir::is_floating(x.type())) return false;
  if (exponent == 0.5) return call.give(apply(Prim::Sqrt, x));
  if (exponent == -0.5) return call.give(1.0 / apply(Prim::Sqrt, x));
  if (exponent == -1) return call.give(1.0 / x);
  if (exponent == -2) return call.give(1.0 / (x * x));
  return call.give(apply(Prim::Pow, x, x.number(exponent)));
}

bool power(LowerCall& call) { return ir::is_floating(call.out().dtype) && binary<Prim::Pow>(call); }

constexpr LowerRow kLowerBinary[] = {
    GL_LOWER("add", "Tensor", add),
    GL_LOWER("add", "Scalar", add),
    GL_LOWER("sub", "Tensor", subtract),
    GL_LOWER("sub", "Scalar", subtract),
    GL_LOWER("rsub", "Tensor", subtract_from),
    GL_LOWER("rsub", "Scalar", subtract_from),
    GL_LOWER("mul", "Tensor", multiply),
    GL_LOWER("mul", "Scalar", multiply),
    GL_LOWER("div", "Tensor", binary<Prim::Div>),
    GL_LOWER("div", "Scalar", binary<Prim::Div>),
    GL_LOWER("div", "Tensor_mode", divide_rounding),
    GL_LOWER("div", "Scalar_mode", divide_rounding),
    GL_LOWER("fmod", "Tensor", float_modulo),
    GL_LOWER("fmod", "Scalar", float_modulo),
    GL_LOWER("remainder", "Tensor", remainder),
    GL_LOWER("remainder", "Scalar", remainder),
    GL_LOWER("maximum", "default", binary<Prim::Max>),
    GL_LOWER("minimum", "default", binary<Prim::Min>),
    GL_LOWER("atan2", "default", binary<Prim::Atan2>),
    GL_LOWER("bitwise_and", "Tensor", binary<Prim::And>),
    GL_LOWER("bitwise_and", "Scalar", binary<Prim::And>),
    GL_LOWER("bitwise_or", "Tensor", binary<Prim::Or>),
    GL_LOWER("bitwise_or", "Scalar", binary<Prim::Or>),
    GL_LOWER("bitwise_xor", "Tensor", binary<Prim::Xor>),
    GL_LOWER("bitwise_xor", "Scalar", binary<Prim::Xor>),
    GL_LOWER("eq", "Tensor", comparison<Prim::Eq>),
    GL_LOWER("eq", "Scalar", comparison<Prim::Eq>),
    GL_LOWER("ne", "Tensor", comparison<Prim::Ne>),
    GL_LOWER("ne", "Scalar", comparison<Prim::Ne>),
    GL_LOWER("lt", "Tensor", comparison<Prim::Lt>),
    GL_LOWER("lt", "Scalar", comparison<Prim::Lt>),
    GL_LOWER("le", "Tensor", comparison<Prim::Le>),
    GL_LOWER("le", "Scalar", comparison<Prim::Le>),
    GL_LOWER("gt", "Tensor", comparison<Prim::Gt>),
    GL_LOWER("gt", "Scalar", comparison<Prim::Gt>),
    GL_LOWER("ge", "Tensor", comparison<Prim::Ge>),
    GL_LOWER("ge", "Scalar", comparison<Prim::Ge>),
    GL_LOWER("logical_and", "default", logical<Prim::And>),
    GL_LOWER("logical_or", "default", logical<Prim::Or>),
    GL_LOWER("logical_xor", "default", logical<Prim::Xor>),
    GL_LOWER("addcmul", "default", add_product),
    GL_LOWER("addcdiv", "default", add_quotient),
    GL_LOWER("lerp", "Scalar", interpolate),
    GL_LOWER("lerp", "Tensor", interpolate),
    GL_LOWER("pow", "Tensor_Scalar", power_number),
    GL_LOWER("pow", "Tensor_Tensor", power),
    GL_LOWER("pow", "Scalar", power),
};

}  // namespace

std::span<const LowerRow> lower_binary_rows() { return kLowerBinary; }

}  // namespace graphlift::codegen
