// Owns: lowering of activations and of their gradients.
#include <cmath>

#include "backends/codegen/lower_rule.h"

namespace graphlift::codegen {
namespace {

constexpr double kSqrtHalf = 0.70710678118654752440;
constexpr double kGeluTanh = 0.79788456080286535588;  // sqrt(2 / pi)
constexpr double kGeluCubic = 0.044715;

Expr sigmoid(const Expr& x) { return apply(Prim::Sigmoid, x); }
Expr tanh(const Expr& x) { return apply(Prim::Tanh, x); }
Expr exp(const Expr& x) { return apply(Prim::Exp, x); }
Expr clamp(const Expr& x, double low, double high) { return apply(Prim::Min, apply(Prim::Max, x, low), high); }

bool by_tanh(const LowerCall& call, size_t i) { return std::get<std::string>(call.node.args[i]) == "tanh"; }

// self, approximate.
bool gelu(LowerCall& call) {
  const Expr x = call.operand(0, call.out().dtype);
  if (by_tanh(call, 1)) return call.give(0.5 * x * (1.0 + tanh(kGeluTanh * (x + kGeluCubic * (x * x * x)))));
  return call.give(x * 0.5 * (1.0 + apply(Prim::Erf, x * kSqrtHalf)));
}

// grad, self, approximate.
bool gelu_backward(LowerCall& call) {
  const Expr grad = call.operand(0, call.out().dtype), x = call.operand(1, call.out().dtype);
  if (by_tanh(call, 2)) {
    const Expr t = tanh(kGeluTanh * (x + kGeluCubic * (x * x * x)));
    const Expr inner = kGeluTanh * (1.0 + (3 * kGeluCubic) * (x * x));
    return call.give(grad * (0.5 * (1.0 + t) + 0.5 * x * (1.0 - t * t) * inner));
  }
  const Expr cdf = 0.5 * (1.0 + apply(Prim::Erf, x * kSqrtHalf));
  const Expr pdf = exp(x * x * -0.5) * 0.39894228040143267794;
  return call.give(grad * (cdf + x * pdf));
}

bool silu(LowerCall& call) {
  const Expr x = call.operand(0, call.out().dtype);
  return call.give(x * sigmoid(x));
}

bool silu_backward(LowerCall& call) {
  const Expr grad = call.operand(0, call.out().dtype), x = call.operand(1, call.out().dtype);
  const Expr s = sigmoid(x);
  return call.give(grad * s * (1.0 + x * (1.0 - s)));
}

bool sigmoid_backward(LowerCall& call) {
  const Expr grad = call.operand(0, call.out().dtype), y = call.operand(1, call.out().dtype);
  return call.give(grad * (1.0 - y) * y);
}

bool tanh_backward(LowerCall& call) {
  const Expr grad = call.operand(0, call.out().dtype), y = call.operand(1, call.out().dtype);
  return call.give(grad * (1.0 - y * y));
}

// grad, self, threshold. NaN passes the gradient on.
bool threshold_backward(LowerCall& call) {
  const Expr grad = call.operand(0, call.out().dtype), x = call.operand(1, call.out().dtype);
  return call.give(select(x <= x.number(call.real(2)), grad.number(0.0), grad));
}

// self, threshold, value.
bool threshold(LowerCall& call) {
  const Expr x = call.operand(0, call.out().dtype);
  return call.give(select(x <= x.number(call.real(1)), x.number(call.real(2)), x));
}

bool leaky_relu(LowerCall& call) {
  const Expr x = call.operand(0, call.out().dtype);
  return call.give(select(x > 0.0, x, x * call.real(1)));
}

// grad, self, negative_slope, self_is_result.
bool leaky_relu_backward(LowerCall& call) {
  const Expr grad = call.operand(0, call.out().dtype), x = call.operand(1, call.out().dtype);
  return call.give(select(x > 0.0, grad, grad * call.real(2)));
}

// self, min, max.
bool hardtanh(LowerCall& call) {
  const Expr x = call.operand(0, call.out().dtype);
  return ir::is_floating(x.type()) && call.give(clamp(x, call.real(1), call.real(2)));
}

// grad, self, min, max.
bool hardtanh_backward(LowerCall& call) {
  const Expr grad = call.operand(0, call.out().dtype), x = call.operand(1, call.out().dtype);
  const Expr outside = apply(Prim::Or, x <= call.real(2), x >= call.real(3));
  return call.give(select(outside, grad.number(0.0), grad));
}

bool hardsigmoid(LowerCall& call) {
  const Expr x = call.operand(0, call.out().dtype);
  return call.give(clamp(x + 3.0, 0, 6) / 6.0);
}

// Eager's sixth is a float32 for all types.
bool hardsigmoid_backward(LowerCall& call) {
  constexpr double kSixth = 1.0F / 6.0F;
  const Expr grad = call.operand(0, call.out().dtype), x = call.operand(1, call.out().dtype);
  return call.give(select(apply(Prim::And, x > -3.0, x < 3.0), grad * kSixth, grad.number(0.0)));
}

bool hardswish(LowerCall& call) {
  const Expr x = call.operand(0, call.out().dtype);
  return call.give(x * clamp(x + 3.0, 0, 6) / 6.0);
}

bool hardswish_backward(LowerCall& call) {
  const Expr grad = call.operand(0, call.out().dtype), x = call.operand(1, call.out().dtype);
  const Expr inside = grad * (x / 3.0 + 0.5);
  return call.give(select(x <= -3.0, grad.number(0.0), select(x < 3.0, inside, grad)));
}

// self, alpha, scale, input_scale.
bool elu(LowerCall& call) {
  const Expr x = call.operand(0, call.out().dtype);
  const double alpha = call.real(1), scale = call.real(2), input_scale = call.real(3);
  return call.give(select(x < 0.0, apply(Prim::Expm1, x * input_scale) * (alpha * scale), x * scale));
}

// grad, alpha, scale, input_scale, is_result, self or result.
bool elu_backward(LowerCall& call) {
  const Expr grad = call.operand(0, call.out().dtype), x = call.operand(5, call.out().dtype);
  const double alpha = call.real(1), scale = call.real(2), input_scale = call.real(3);
  const Expr low = call.boolean(4) ? grad * input_scale * (x + alpha * scale)
                                   : grad * (input_scale * alpha * scale) * exp(x * input_scale);
  return call.give(select(x <= 0.0, low, grad * scale));
}

// self, beta, threshold.
bool softplus(LowerCall& call) {
  const Expr x = call.operand(0, call.out().dtype);
  const Expr scaled = x * call.real(1);
  return call.give(select(scaled > scaled.number(call.real(2)), x, apply(Prim::Log1p, exp(scaled)) / call.real(1)));
}

// grad, self, beta, threshold.
bool softplus_backward(LowerCall& call) {
  const Expr grad = call.operand(0, call.out().dtype), x = call.operand(1, call.out().dtype);
  const Expr scaled = x * call.real(2), z = exp(scaled);
  return call.give(select(scaled > scaled.number(call.real(3)), grad, grad * z / (z + 1.0)));
}

bool mish(LowerCall& call) {
  const Expr x = call.operand(0, call.out().dtype);
  return call.give(x * tanh(apply(Prim::Log1p, exp(x))));
}

constexpr LowerRow kLowerActivations[] = {
    GL_LOWER("gelu", "default", gelu),
    GL_LOWER("gelu_backward", "default", gelu_backward),
    GL_LOWER("silu", "default", silu),
    GL_LOWER("silu_backward", "default", silu_backward),
    GL_LOWER("sigmoid_backward", "default", sigmoid_backward),
    GL_LOWER("tanh_backward", "default", tanh_backward),
    GL_LOWER("threshold", "default", threshold),
    GL_LOWER("threshold_backward", "default", threshold_backward),
    GL_LOWER("leaky_relu", "default", leaky_relu),
    GL_LOWER("leaky_relu_backward", "default", leaky_relu_backward),
    GL_LOWER("hardtanh", "default", hardtanh),
    GL_LOWER("hardtanh_backward", "default", hardtanh_backward),
    GL_LOWER("hardsigmoid", "default", hardsigmoid),
    GL_LOWER("hardsigmoid_backward", "default", hardsigmoid_backward),
    GL_LOWER("hardswish", "default", hardswish),
    GL_LOWER("hardswish_backward", "default", hardswish_backward),
    GL_LOWER("elu", "default", elu),
    GL_LOWER("elu_backward", "default", elu_backward),
    GL_LOWER("softplus", "default", softplus),
    GL_LOWER("softplus_backward", "default", softplus_backward),
    GL_LOWER("mish", "default", mish),
};

}  // namespace

std::span<const LowerRow> lower_activations_rows() { return kLowerActivations; }

}  // namespace graphlift::codegen
