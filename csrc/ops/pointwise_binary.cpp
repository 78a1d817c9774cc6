// Owns: rows of operators over two operands, element by element. Must not: hold gradients.
#include "ops/family.h"
#include "ops/iterator.h"
#include "ops/results.h"

namespace graphlift::ops {
namespace {

using ir::DType;
using ir::TensorType;
using enum ResultDType;

constexpr auto kCommon = pointwise_rule<Pointwise{2}>;
constexpr auto kSubtract = pointwise_rule<Pointwise{2, Common, kBoolOperand}>;
constexpr auto kReal = pointwise_rule<Pointwise{2, Common, kComplex}>;
constexpr auto kRealNoBool = pointwise_rule<Pointwise{2, Common, kComplex | kBool}>;
constexpr auto kNoBool = pointwise_rule<Pointwise{2, Common, kBool}>;
constexpr auto kFloatOnly = pointwise_rule<Pointwise{2, Common, kInt | kComplex}>;
constexpr auto kFloatOrComplexOnly = pointwise_rule<Pointwise{2, Common, kInt}>;
constexpr auto kIntOnly = pointwise_rule<Pointwise{2, Common, kFloat}>;
constexpr auto kIntNoBool = pointwise_rule<Pointwise{2, Common, kFloat | kBool}>;
constexpr auto kBothToFloat = pointwise_rule<Pointwise{2, Float}>;
constexpr auto kBothToRealFloat = pointwise_rule<Pointwise{2, Float, kComplex}>;
constexpr auto kCompare = pointwise_rule<Pointwise{2, Bool}>;
constexpr auto kOrder = pointwise_rule<Pointwise{2, Bool, kComplex}>;
constexpr auto kSameDType = pointwise_rule<Pointwise{2, Common, kMixed | kComplex}>;
constexpr auto kSameFloat = pointwise_rule<Pointwise{2, Common, kMixed | kInt | kComplex}>;

// alpha must fit the result: no float for integers, no bool unless the result is bool.
template <ShapeRule Rule, size_t Alpha>
bool with_alpha(ShapeCall& call) {
  if (!Rule(call)) return false;
  const DType alpha = number_dtype(call.args[Alpha]), result = call.results[0]->dtype;
  if (alpha == DType::bool_) return result == DType::bool_;
  if (ir::is_floating(alpha)) return ir::is_floating(result) || ir::is_complex(result);
  return !ir::is_complex(alpha) || ir::is_complex(result);
}
// A bool is no operand of a subtraction, as a number neither.
template <ShapeRule Rule>
bool without_bool_numbers(ShapeCall& call) {
  return !std::holds_alternative<bool>(call.args[0]) && !std::holds_alternative<bool>(call.args[1]) && Rule(call);
}
constexpr auto kAdd = with_alpha<kCommon, 2>;
constexpr auto kSub = with_alpha<without_bool_numbers<kSubtract>, 2>;
constexpr auto kReverseSub =
    with_alpha<without_bool_numbers<pointwise_rule<Pointwise{2, Common, kBoolOperand, {1, 0}}>>, 2>;

// The rounding mode decides: none is true division.
bool divide_with_mode(ShapeCall& call) { return call.none(2) ? kBothToFloat(call) : kRealNoBool(call); }

// The base is a number; the result is contiguous whatever the exponent's layout.
bool pow_number_tensor(ShapeCall& call) {
  if (!kNoBool(call)) return false;
  call.results[0]->strides = contiguous(call.results[0]->sizes);
  return true;
}

// Two real parts make a complex.
bool make_complex(ShapeCall& call) {
  if (!kSameFloat(call)) return false;
  TensorType& result = *call.results[0];
  if (result.dtype == DType::bfloat16) return false;
  result.dtype = complex_of(result.dtype);
  return true;
}

constexpr OpRow kPointwiseBinary[] = {
    GL_BOTH("add", "Tensor", kAdd),
    GL_BOTH("add", "Scalar", kAdd),
    GL_BOTH("sub", "Tensor", kSub),
    GL_BOTH("sub", "Scalar", kSub),
    GL_OP("rsub", "Tensor", kReverseSub),
    GL_OP("rsub", "Scalar", kReverseSub),
    GL_BOTH("mul", "Tensor", kCommon),
    GL_BOTH("mul", "Scalar", kCommon),
    GL_BOTH("div", "Tensor", kBothToFloat),
    GL_BOTH("div", "Scalar", kBothToFloat),
    GL_BOTH("div", "Tensor_mode", divide_with_mode),
    GL_BOTH("div", "Scalar_mode", divide_with_mode),
    GL_OP("floor_divide", "default", kRealNoBool),
    GL_OP("floor_divide_", "Tensor", in_place<kRealNoBool>),
    GL_BOTH("floor_divide", "Scalar", kRealNoBool),
    GL_BOTH("remainder", "Tensor", kRealNoBool),
    GL_BOTH("remainder", "Scalar", kRealNoBool),
    GL_OP("remainder", "Scalar_Tensor", kRealNoBool),
    GL_BOTH("fmod", "Tensor", kRealNoBool),
    GL_BOTH("fmod", "Scalar", kRealNoBool),
    GL_OP("pow", "Tensor_Tensor", kNoBool),
    GL_OP("pow_", "Tensor", in_place<kNoBool>),
    GL_OP("pow", "Scalar", pow_number_tensor),
    GL_OP("maximum", "default", kReal),
    GL_OP("minimum", "default", kReal),
    GL_OP("fmax", "default", kReal),
    GL_OP("fmin", "default", kReal),
    GL_BOTH("atan2", "default", kBothToRealFloat),
    GL_BOTH("hypot", "default", kFloatOnly),
    GL_BOTH("xlogy", "Tensor", kBothToRealFloat),
    GL_OP("xlogy", "Scalar_Self", kBothToRealFloat),
    GL_BOTH("xlogy", "Scalar_Other", kBothToRealFloat),
    GL_BOTH("copysign", "Tensor", kBothToRealFloat),
    GL_BOTH("copysign", "Scalar", kBothToRealFloat),
    GL_OP("logaddexp", "default", kFloatOrComplexOnly),
    GL_OP("logaddexp2", "default", kFloatOrComplexOnly),
    GL_BOTH("nextafter", "default", kFloatOnly),
    GL_BOTH("heaviside", "default", kSameDType),
    GL_BOTH("gcd", "default", kIntNoBool),
    GL_BOTH("lcm", "default", kIntNoBool),
    GL_OP("complex", "default", make_complex),
    GL_OP("polar", "default", make_complex),
    GL_BOTH("bitwise_and", "Tensor", kIntOnly),
    GL_BOTH("bitwise_and", "Scalar", kIntOnly),
    GL_OP("bitwise_and", "Scalar_Tensor", kIntOnly),
    GL_BOTH("bitwise_or", "Tensor", kIntOnly),
    GL_BOTH("bitwise_or", "Scalar", kIntOnly),
    GL_OP("bitwise_or", "Scalar_Tensor", kIntOnly),
    GL_BOTH("bitwise_xor", "Tensor", kIntOnly),
    GL_BOTH("bitwise_xor", "Scalar", kIntOnly),
    GL_OP("bitwise_xor", "Scalar_Tensor", kIntOnly),
    GL_BOTH("bitwise_left_shift", "Tensor", kIntNoBool),
    GL_BOTH("bitwise_left_shift", "Tensor_Scalar", kIntNoBool),
    GL_BOTH("bitwise_right_shift", "Tensor", kIntNoBool),
    GL_BOTH("bitwise_right_shift", "Tensor_Scalar", kIntNoBool),
    GL_BOTH("eq", "Tensor", kCompare),
    GL_BOTH("eq", "Scalar", kCompare),
    GL_BOTH("ne", "Tensor", kCompare),
    GL_BOTH("ne", "Scalar", kCompare),
    GL_BOTH("lt", "Tensor", kOrder),
    GL_BOTH("lt", "Scalar", kOrder),
    GL_BOTH("le", "Tensor", kOrder),
    GL_BOTH("le", "Scalar", kOrder),
    GL_BOTH("gt", "Tensor", kOrder),
    GL_BOTH("gt", "Scalar", kOrder),
    GL_BOTH("ge", "Tensor", kOrder),
    GL_BOTH("ge", "Scalar", kOrder),
    GL_BOTH("logical_and", "default", kCompare),
    GL_BOTH("logical_or", "default", kCompare),
    GL_BOTH("logical_xor", "default", kCompare),
    GL_BOTH("clamp_min", "Tensor", kReal),
    GL_BOTH("clamp_max", "Tensor", kReal),
};

}  // namespace

std::span<const OpRow> pointwise_binary_rows() { return kPointwiseBinary; }

}  // namespace graphlift::ops
