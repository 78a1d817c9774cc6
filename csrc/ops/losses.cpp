// Owns: rows of losses and their gradients. Must not: hold softmax.
#include "ops/family.h"
#include "ops/iterator.h"
#include "ops/results.h"

namespace graphlift::ops {
namespace {

using ir::Dims;
using ir::DType;
using ir::TensorType;
using enum ResultDType;

constexpr int64_t kNoReduction = 0;

bool is_class(const TensorType& type) { return type.dtype == DType::int64 || type.dtype == DType::uint8; }

// self, target, weight, reduction, ignore_index -> loss, total weight.
bool nll_loss(ShapeCall& call) {
  const TensorType& self = call.tensor(0);
  const TensorType& target = call.tensor(1);
  if (self.rank() < 1 || self.rank() > 2 || target.rank() > 1 || !is_class(target) || !ir::is_floating(self.dtype))
    return false;
  if (self.rank() == 1 ? target.rank() == 1 && !equal(call.env, target.sizes[0], 1)
                       : target.rank() != 1 || !equal(call.env, self.sizes[0], target.sizes[0]))
    return false;
  const bool each = call.integer(3) == kNoReduction && self.rank() == 2;
  return give_contiguous(call, self, each ? Dims{self.sizes[0]} : Dims{}) && give_contiguous(call, self, {});
}

// grad, self, ...
bool like_input(ShapeCall& call) { return give_contiguous(call, call.tensor(1), call.tensor(1).sizes); }

// grad, self, target, ...
bool nll_loss_backward(ShapeCall& call) {
  const TensorType &self = call.tensor(1), &target = call.tensor(2);
  if (self.rank() == 2 && (target.rank() != 1 || !equal(call.env, self.sizes[0], target.sizes[0]))) return false;
  return like_input(call);
}

bool nll_loss_2d(ShapeCall& call) {
  const TensorType& self = call.tensor(0);
  const TensorType& target = call.tensor(1);
  if (self.rank() != 4 || target.rank() != 3 || !is_class(target)) return false;
  const Dims places = {self.sizes[0], self.sizes[2], self.sizes[3]};
  if (!equal(call.env, places, target.sizes)) return false;
  const bool each = call.integer(3) == kNoReduction;
  return give_contiguous(call, self, each ? places : Dims{}) && give_contiguous(call, self, {});
}

bool nll_loss_2d_backward(ShapeCall& call) { return is_contiguous(call.env, call.tensor(1)) && like_input(call); }

// self, target, reduction, ...: the pairwise loss, or one number.
template <size_t Reduction, Pointwise Kind>
bool pairwise(ShapeCall& call) {
  if (!pointwise(call, Kind)) return false;
  TensorType& result = *call.results[0];
  if (call.integer(Reduction) == kNoReduction) return true;
  result.sizes.clear();
  result.strides.clear();
  return true;
}
constexpr Pointwise kPair{2, Common, kInt};

constexpr Pointwise kSamePair{2, Common, kInt | kMixed};

// target * exp(-target * self).
bool soft_margin_gradient(ShapeCall& call) {
  const TensorType* operands[] = {&call.tensor(2), &call.tensor(1)};
  auto exponent = iterate(call.env, operands);
  if (!exponent) return false;
  TensorType type = call.tensor(1);
  type.sizes = std::move(exponent->sizes);
  type.strides = std::move(exponent->strides);
  operands[1] = &type;
  auto placement = iterate(call.env, operands);
  return placement && give(call, type.dtype, type.device, std::move(placement->sizes), std::move(placement->strides));
}

// Of self's dtype on CPU, whatever torch's meta kernel says.
bool huber_loss(ShapeCall& call) {
  if (!pairwise<2, kPair>(call)) return false;
  call.results[0]->dtype = call.tensor(0).dtype;
  if (call.integer(2) != kNoReduction) return true;
  call.results.clear();
  return give_preserved(call, call.tensor(0), call.tensor(0).dtype);
}

// grad, self, target, ...; `mixed`: of any dtypes.
template <ShapeRule Forward, bool mixed = false>
bool pairwise_backward(ShapeCall& call) {
  if (mixed) {
    if (!ir::is_floating(call.tensor(1).dtype)) return false;
  } else if (call.tensor(1).dtype != call.tensor(2).dtype || call.tensor(1).dtype != call.tensor(0).dtype)
    return false;
  auto sizes = broadcast(call.env, call.tensor(1).sizes, call.tensor(2).sizes);
  if (!sizes || !equal(call.env, *sizes, call.tensor(1).sizes)) return false;
  sizes = broadcast(call.env, *sizes, call.tensor(0).sizes);
  return sizes && equal(call.env, *sizes, call.tensor(1).sizes) && Forward(call);
}

// self, target, weight, reduction.
bool binary_cross_entropy(ShapeCall& call) {
  const TensorType& self = call.tensor(0);
  if (!ir::is_floating(self.dtype) || !equal(call.env, self.sizes, call.tensor(1).sizes)) return false;
  if (call.integer(3) != kNoReduction) return give_contiguous(call, self, {});
  return give_preserved(call, self, self.dtype);
}
bool binary_cross_entropy_backward(ShapeCall& call) {
  return give_preserved(call, call.tensor(1), call.tensor(1).dtype);
}

constexpr auto kOneMinusTarget = pointwise_rule<Pointwise{2, Common, kNothing, {1, 4}}>;

// self, target, weight, pos_weight, reduction.
bool binary_cross_entropy_with_logits(ShapeCall& call) {
  const TensorType& self = call.tensor(0);
  const TensorType& target = call.tensor(1);
  if (!ir::is_floating(self.dtype) || self.dtype != target.dtype || !equal(call.env, self.sizes, target.sizes))
    return false;
  if (call.integer(4) != kNoReduction) return give_contiguous(call, self, {});
  if (!call.none(2) || !call.none(3)) return false;
  // Computed in the memory of 1 - target.
  return kOneMinusTarget(call);
}

constexpr OpRow kLosses[] = {
    GL_OP("nll_loss_forward", "default", nll_loss),
    GL_OP("nll_loss_backward", "default", nll_loss_backward),
    GL_OP("nll_loss2d_forward", "default", nll_loss_2d),
    GL_OP("nll_loss2d_backward", "default", nll_loss_2d_backward),
    GL_OP("mse_loss", "default", pairwise<2, kPair>),
    GL_OP("mse_loss_backward", "default", pairwise_backward<like_input, true>),
    GL_OP("smooth_l1_loss", "default", pairwise<2, kPair>),
    GL_OP("smooth_l1_loss_backward", "default", pairwise_backward<like_input>),
    GL_OP("huber_loss", "default", huber_loss),
    GL_OP("huber_loss_backward", "default", pairwise_backward<like_input>),
    GL_OP("soft_margin_loss", "default", pairwise<2, kSamePair>),
    GL_OP("soft_margin_loss_backward", "default", pairwise_backward<soft_margin_gradient>),
    GL_OP("binary_cross_entropy", "default", binary_cross_entropy),
    GL_OP("binary_cross_entropy_backward", "default", binary_cross_entropy_backward),
    GL_OP("binary_cross_entropy_with_logits", "default", binary_cross_entropy_with_logits),
};

}  // namespace

std::span<const OpRow> losses_rows() { return kLosses; }

}  // namespace graphlift::ops
