// Owns: rows of operators over three operands, element by element. Must not: hold gradients.
#include "ops/family.h"
#include "ops/iterator.h"
#include "ops/results.h"

namespace graphlift::ops {
namespace {

using ir::DType;
using ir::TensorType;
using enum ResultDType;

constexpr auto kCommon3 = pointwise_rule<Pointwise{3, Common, kBool}>;
constexpr auto kSame3 = pointwise_rule<Pointwise{3, Common, kMixed | kInt}>;
constexpr auto kSame2 = pointwise_rule<Pointwise{2, Common, kMixed | kInt}>;
constexpr auto kClampTensor = pointwise_rule<Pointwise{3, Common, kComplex}>;

// Two integers do not divide.
bool addcdiv(ShapeCall& call) {
  bool inexact = false;
  for (size_t i : {1, 2}) {
    const DType dtype = call.is_tensor(i) ? call.tensor(i).dtype : number_dtype(call.args[i]);
    inexact |= ir::is_floating(dtype) || ir::is_complex(dtype);
  }
  return inexact && kCommon3(call);
}

bool clamp_tensor(ShapeCall& call) { return (!call.none(1) || !call.none(2)) && kClampTensor(call); }

bool where(ShapeCall& call) {
  if (!call.is_tensor(0)) return false;
  const TensorType& condition = call.tensor(0);
  if (condition.dtype != DType::bool_ && condition.dtype != DType::uint8) return false;
  ResultType promotion(call.default_dtype);
  std::vector<TensorType> operands = {condition};
  for (size_t i : {1, 2}) {
    promotion.add(call, i);
    if (!call.is_tensor(i) && !call.is_number(i)) return false;
    operands.push_back(call.is_tensor(i) ? call.tensor(i)
                                         : TensorType{number_dtype(call.args[i]), {}, {}, {}, 0, false});
  }
  auto dtype = promotion.get();
  if (!dtype) return false;
  // Operands of another dtype are copied first, on any device.
  if (operands[1].dtype != operands[2].dtype)
    for (size_t i : {1, 2})
      if (operands[i].dtype != *dtype) operands[i].strides = preserved_strides(call.env, operands[i]);
  const TensorType* pointers[] = {&operands[0], &operands[1], &operands[2]};
  auto device = common_device(pointers);
  auto placement = iterate(call.env, pointers);
  if (!device || !placement) return false;
  return give(call, *dtype, *device, std::move(placement->sizes), std::move(placement->strides));
}

// Contiguous, whatever the layout of self.
bool masked_fill(ShapeCall& call) {
  const TensorType& self = call.tensor(0);
  const TensorType& mask = call.tensor(1);
  if (mask.dtype != DType::bool_ || (mask.device != self.device && mask.rank() != 0)) return false;
  if (call.is_tensor(2) && call.tensor(2).rank() != 0) return false;
  const DType value = call.is_tensor(2) ? call.tensor(2).dtype : number_dtype(call.args[2]);
  if (ir::is_complex(value) && !ir::is_complex(self.dtype)) return false;
  auto sizes = broadcast(call.env, self.sizes, mask.sizes);
  return sizes && give_contiguous(call, self, std::move(*sizes));
}

constexpr OpRow kPointwiseTernary[] = {
    GL_BOTH("addcmul", "default", kCommon3),
    GL_BOTH("addcdiv", "default", addcdiv),
    GL_BOTH("lerp", "Scalar", kSame2),
    GL_BOTH("lerp", "Tensor", kSame3),
    GL_BOTH("clamp", "Tensor", clamp_tensor),
    GL_OP("where", "self", where),
    GL_BOTH("masked_fill", "Scalar", masked_fill),
    GL_BOTH("masked_fill", "Tensor", masked_fill),
};

}  // namespace

std::span<const OpRow> pointwise_ternary_rows() { return kPointwiseTernary; }

}  // namespace graphlift::ops
