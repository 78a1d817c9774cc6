// Owns: rows of gradients of pointwise operators. Must not: hold gradients of anything that reduces.
#include "ops/family.h"
#include "ops/iterator.h"
#include "ops/results.h"

namespace graphlift::ops {
namespace {

using ir::Dims;
using ir::TensorType;
using enum ResultDType;

constexpr auto kOfTwo = pointwise_rule<Pointwise{2}>;
constexpr auto kSelfThenGrad = pointwise_rule<Pointwise{2, Common, kNothing, {1, 0}}>;
constexpr auto kFirstAndSixth = pointwise_rule<Pointwise{2, Common, kNothing, {0, 5}}>;

template <size_t I>
bool preserved_as(ShapeCall& call) {
  return give_preserved(call, call.tensor(I), call.tensor(I).dtype);
}

bool prelu(ShapeCall& call) {
  const TensorType& self = call.tensor(0);
  if (self.dtype != call.tensor(1).dtype) return false;
  auto sizes = broadcast(call.env, self.sizes, call.tensor(1).sizes);
  return sizes && equal(call.env, *sizes, self.sizes) && give_preserved(call, self, self.dtype);
}

bool prelu_backward(ShapeCall& call) {
  const TensorType* operands[] = {&call.tensor(1), &call.tensor(2), &call.tensor(0)};
  auto placement = iterate(call.env, operands);
  if (!placement) return false;
  for (int i = 0; i < 2; ++i) give(call, operands[0]->dtype, operands[0]->device, placement->sizes, placement->strides);
  return true;
}

constexpr OpRow kPointwiseBackward[] = {
    GL_OP("threshold_backward", "default", kSelfThenGrad),
    GL_OP("gelu_backward", "default", kOfTwo),
    GL_OP("silu_backward", "default", kOfTwo),
    GL_OP("mish_backward", "default", kOfTwo),
    GL_OP("sigmoid_backward", "default", kOfTwo),
    GL_OP("tanh_backward", "default", kOfTwo),
    GL_OP("leaky_relu_backward", "default", kSelfThenGrad),
    GL_OP("hardtanh_backward", "default", kOfTwo),
    GL_OP("hardsigmoid_backward", "default", kOfTwo),
    GL_OP("hardswish_backward", "default", kOfTwo),
    GL_OP("softplus_backward", "default", kOfTwo),
    GL_OP("softshrink_backward", "default", kOfTwo),
    GL_OP("hardshrink_backward", "default", kOfTwo),
    GL_OP("logit_backward", "default", kOfTwo),
    GL_OP("elu_backward", "default", kFirstAndSixth),
    GL_OP("log_sigmoid_backward", "default", preserved_as<0>),
    GL_OP("_prelu_kernel", "default", prelu),
    GL_OP("_prelu_kernel_backward", "default", prelu_backward),
};

}  // namespace

std::span<const OpRow> pointwise_backward_rows() { return kPointwiseBackward; }

}  // namespace graphlift::ops
