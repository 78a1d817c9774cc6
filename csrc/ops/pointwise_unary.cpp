// Owns: rows of operators over one tensor, element by element. Must not: hold operators over several tensors.
#include "ops/family.h"
#include "ops/iterator.h"
#include "ops/results.h"

namespace graphlift::ops {
namespace {

using ir::DType;
using ir::TensorType;
using enum ResultDType;

constexpr auto kKeep = pointwise_rule<Pointwise{1}>;
constexpr auto kKeepReal = pointwise_rule<Pointwise{1, Common, kComplex}>;
constexpr auto kKeepRealNoBool = pointwise_rule<Pointwise{1, Common, kComplex | kBool}>;
constexpr auto kKeepNoBool = pointwise_rule<Pointwise{1, Common, kBool}>;
constexpr auto kKeepFloat = pointwise_rule<Pointwise{1, Common, kInt | kComplex}>;
constexpr auto kKeepFloatOrComplex = pointwise_rule<Pointwise{1, Common, kInt}>;
constexpr auto kKeepInt = pointwise_rule<Pointwise{1, Common, kFloat}>;
constexpr auto kToFloat = pointwise_rule<Pointwise{1, Float}>;
constexpr auto kToRealFloat = pointwise_rule<Pointwise{1, Float, kComplex}>;
constexpr auto kToBool = pointwise_rule<Pointwise{1, Bool}>;
constexpr auto kToBoolReal = pointwise_rule<Pointwise{1, Bool, kComplex}>;
constexpr auto kSecondToFloat = pointwise_rule<Pointwise{1, Float, kComplex, {1}}>;

// Bounds take part in promotion, but not in the iteration.
constexpr auto kClamp = pointwise_rule<Pointwise{3, Common, kComplex | kBool, {0, 1, 2}, false}>;
constexpr auto kClampOne = pointwise_rule<Pointwise{2, Common, kComplex | kBool, {0, 1, 2}, false}>;

bool has_bound(ShapeCall& call) { return !call.none(1) || !call.none(2); }
bool clamp(ShapeCall& call) { return has_bound(call) && kClamp(call); }

bool is_negative_integer(const ShapeArg& number) {
  const auto* sym = std::get_if<ir::Sym>(static_cast<const ShapeArg::variant*>(&number));
  return sym && (!sym->is_constant() || sym->constant() < 0);
}

bool pow_tensor_number(ShapeCall& call) {
  if (!pointwise(call, {2, Common, kBool, {0, 1, 2}, false})) return false;
  const DType dtype = call.results[0]->dtype;
  return ir::is_floating(dtype) || ir::is_complex(dtype) || !is_negative_integer(call.args[1]);
}

// Fresh memory in the format of argument 0.
bool preserved(ShapeCall& call) { return give_preserved(call, call.tensor(0), call.tensor(0).dtype); }

bool scale(ShapeCall& call) {
  const TensorType& self = call.tensor(0);
  if (ir::is_complex(self.dtype)) return false;
  return give_preserved(call, self, ir::is_floating(self.dtype) ? self.dtype : call.default_dtype);
}

// self, min, max.
bool hardtanh(ShapeCall& call) {
  const TensorType& self = call.tensor(0);
  if (self.dtype == DType::bool_ || ir::is_complex(self.dtype)) return false;
  if (self.dtype == DType::uint8 && (call.real(1) < 0 || call.real(2) < 0)) return false;
  return preserved(call);
}

bool is_infinite(ShapeCall& call) {
  const TensorType& self = call.tensor(0);
  if (ir::is_floating(self.dtype) || ir::is_complex(self.dtype)) return kToBool(call);
  return give_preserved(call, self, DType::bool_);
}

// Of a real tensor it is the tensor itself.
bool conjugate(ShapeCall& call) { return ir::is_complex(call.tensor(0).dtype) && preserved(call); }

bool fill_tensor(ShapeCall& call) {
  if (call.is_tensor(1) && call.tensor(1).rank() != 0) return false;
  return preserved(call);
}

// Of a complex tensor: made as complex, then copied into contiguous memory.
bool angle(ShapeCall& call) {
  const TensorType& self = call.tensor(0);
  if (!ir::is_complex(self.dtype)) return kToFloat(call);
  return give_contiguous(call, real_of(self.dtype), self.device, self.sizes);
}

bool magnitude(ShapeCall& call) {
  const TensorType& self = call.tensor(0);
  if (self.dtype == DType::bool_ && self.device.is_cpu()) return false;
  if (!ir::is_complex(self.dtype)) return kKeep(call);
  return give_preserved(call, self, real_of(self.dtype));
}

// Contiguous on CPU; the buffer is used there alone.
bool log_sigmoid_forward(ShapeCall& call) {
  const TensorType& self = call.tensor(0);
  if (!ir::is_floating(self.dtype)) return false;
  if (!self.device.is_cpu()) return preserved(call) && give_contiguous(call, self, {0});
  return give_contiguous(call, self, self.sizes) && give_contiguous(call, self, self.sizes);
}

constexpr OpRow kPointwiseUnary[] = {
    GL_BOTH("exp", "default", kToFloat),
    GL_BOTH("exp2", "default", kToFloat),
    GL_BOTH("expm1", "default", kToFloat),
    GL_BOTH("log", "default", kToFloat),
    GL_BOTH("log2", "default", kToFloat),
    GL_BOTH("log10", "default", kToFloat),
    GL_BOTH("log1p", "default", kToFloat),
    GL_BOTH("sqrt", "default", kToFloat),
    GL_BOTH("rsqrt", "default", kToFloat),
    GL_BOTH("reciprocal", "default", kToFloat),
    GL_BOTH("sigmoid", "default", kToFloat),
    GL_BOTH("sin", "default", kToFloat),
    GL_BOTH("cos", "default", kToFloat),
    GL_BOTH("tan", "default", kToFloat),
    GL_BOTH("asin", "default", kToFloat),
    GL_BOTH("acos", "default", kToFloat),
    GL_BOTH("atan", "default", kToFloat),
    GL_BOTH("sinh", "default", kToFloat),
    GL_BOTH("cosh", "default", kToFloat),
    GL_BOTH("tanh", "default", kToFloat),
    GL_BOTH("asinh", "default", kToFloat),
    GL_BOTH("acosh", "default", kToFloat),
    GL_BOTH("atanh", "default", kToFloat),
    GL_BOTH("sinc", "default", kToFloat),
    GL_BOTH("erf", "default", kToRealFloat),
    GL_BOTH("erfc", "default", kToRealFloat),
    GL_BOTH("erfinv", "default", kToRealFloat),
    GL_BOTH("lgamma", "default", kToRealFloat),
    GL_BOTH("digamma", "default", kToRealFloat),
    GL_BOTH("i0", "default", kToRealFloat),
    GL_BOTH("logit", "default", kToRealFloat),
    GL_OP("special_entr", "default", kToRealFloat),
    GL_OP("special_erfcx", "default", kToRealFloat),
    GL_OP("special_i0e", "default", kToRealFloat),
    GL_OP("special_i1", "default", kToRealFloat),
    GL_OP("special_i1e", "default", kToRealFloat),
    GL_OP("special_ndtri", "default", kToRealFloat),
    GL_OP("special_log_ndtr", "default", kToRealFloat),
    GL_OP("polygamma", "default", kSecondToFloat),
    GL_BOTH("deg2rad", "default", scale),
    GL_BOTH("rad2deg", "default", scale),
    GL_OP("angle", "default", angle),
    GL_OP("abs", "default", magnitude),
    GL_OP("abs_", "default", in_place<kKeepReal>),
    GL_BOTH("neg", "default", kKeepNoBool),
    GL_BOTH("ceil", "default", kKeepRealNoBool),
    GL_BOTH("floor", "default", kKeepRealNoBool),
    GL_BOTH("round", "default", kKeepRealNoBool),
    GL_BOTH("round", "decimals", kKeepFloat),
    GL_BOTH("trunc", "default", kKeepRealNoBool),
    GL_BOTH("frac", "default", kKeepFloat),
    GL_BOTH("sign", "default", kKeepReal),
    GL_BOTH("sgn", "default", kKeep),
    GL_BOTH("conj_physical", "default", conjugate),
    GL_BOTH("nan_to_num", "default", preserved),
    GL_BOTH("bitwise_not", "default", kKeepInt),
    GL_BOTH("logical_not", "default", kToBool),
    GL_OP("isnan", "default", kToBool),
    GL_OP("isinf", "default", is_infinite),
    GL_OP("isposinf", "default", kToBoolReal),
    GL_OP("isneginf", "default", kToBoolReal),
    GL_OP("signbit", "default", kToBoolReal),
    GL_BOTH("relu", "default", kKeepRealNoBool),
    GL_BOTH("gelu", "default", kKeepFloat),
    GL_BOTH("silu", "default", kKeepFloatOrComplex),
    GL_BOTH("mish", "default", kKeepFloat),
    GL_BOTH("hardswish", "default", kKeepFloat),
    GL_BOTH("hardsigmoid", "default", kKeepFloat),
    GL_BOTH("hardtanh", "default", hardtanh),
    GL_BOTH("elu", "default", kKeepFloat),
    GL_BOTH("celu", "default", kKeepFloat),
    GL_BOTH("leaky_relu", "default", kKeepFloat),
    GL_OP("softplus", "default", kKeepFloat),
    GL_OP("softshrink", "default", kKeepFloat),
    GL_OP("hardshrink", "default", kKeepFloat),
    GL_BOTH("threshold", "default", kKeepRealNoBool),
    GL_OP("log_sigmoid_forward", "default", log_sigmoid_forward),
    GL_OP("pow", "Tensor_Scalar", pow_tensor_number),
    GL_OP("pow_", "Scalar", in_place<pow_tensor_number>),
    GL_BOTH("clamp", "default", clamp),
    GL_BOTH("clamp_min", "default", kClampOne),
    GL_BOTH("clamp_max", "default", kClampOne),
    GL_BOTH("fill", "Scalar", preserved),
    GL_BOTH("fill", "Tensor", fill_tensor),
    GL_BOTH("zero", "default", preserved),
};

}  // namespace

std::span<const OpRow> pointwise_unary_rows() { return kPointwiseUnary; }

}  // namespace graphlift::ops
