// Owns: rows of random operators. Must not: know how numbers are drawn.
#include "ops/factories.h"
#include "ops/family.h"
#include "ops/iterator.h"
#include "ops/results.h"

namespace graphlift::ops {
namespace {

using ir::DType;
using ir::Sym;
using ir::TensorType;

bool random_of_sizes(ShapeCall& call) { return give_sizes(call, call.syms(0), 1, call.default_dtype); }
bool of_sizes_generator(ShapeCall& call) { return give_sizes(call, call.syms(0), 2, call.default_dtype); }
bool integers_below(ShapeCall& call) { return give_sizes(call, call.syms(1), 2, DType::int64); }
bool integers_below_generator(ShapeCall& call) { return give_sizes(call, call.syms(1), 3, DType::int64); }
bool integers_between(ShapeCall& call) { return give_sizes(call, call.syms(2), 3, DType::int64); }
bool integers_between_generator(ShapeCall& call) { return give_sizes(call, call.syms(2), 4, DType::int64); }
bool permutation(ShapeCall& call) { return give_sizes(call, {call.sym(0)}, 1, DType::int64); }
bool permutation_generator(ShapeCall& call) { return give_sizes(call, {call.sym(0)}, 2, DType::int64); }
bool random_like(ShapeCall& call) { return give_like(call, 1); }
bool integers_like(ShapeCall& call) { return give_like(call, 2); }
bool integers_like_between(ShapeCall& call) { return give_like(call, 3); }

bool random_preserved(ShapeCall& call) { return give_preserved(call, call.tensor(0), call.tensor(0).dtype); }
template <size_t I>
bool contiguous_as(ShapeCall& call) {
  return give_contiguous(call, call.tensor(I), call.tensor(I).sizes);
}

bool normal_of_two(ShapeCall& call) {
  auto sizes = broadcast(call.env, call.tensor(0).sizes, call.tensor(1).sizes);
  return sizes && give_contiguous(call, call.tensor(0), *sizes);
}

bool multinomial(ShapeCall& call) {
  TensorType type = call.tensor(0);
  if (type.rank() < 1 || type.rank() > 2) return false;
  type.sizes.back() = call.sym(1);
  return give_contiguous(call, DType::int64, type.device, type.sizes);
}

bool dropout(ShapeCall& call) {
  const TensorType& input = call.tensor(0);
  if (!ir::is_floating(input.dtype) && !ir::is_complex(input.dtype)) return false;
  const bool no_mask = input.device.is_cpu() && is_empty(call.env, input.sizes);
  TensorType mask = input;
  mask.strides = preserved_strides(call.env, input);
  mask.offset = 0;
  const bool training = call.none(2) || call.boolean(2);
  if (!training || no_mask || !input.device.is_cpu()) {
    give_preserved(call, input, input.dtype);
  } else {  // the product of input and mask
    const TensorType* operands[] = {&input, &mask};
    auto placement = iterate(call.env, operands);
    if (!placement) return false;
    give(call, input.dtype, input.device, std::move(placement->sizes), std::move(placement->strides));
  }
  mask.dtype = no_mask ? input.dtype : DType::bool_;
  return give(call, std::move(mask));
}

bool dropout_backward(ShapeCall& call) {
  const TensorType& grad = call.tensor(0);
  if (!grad.device.is_cpu()) return give_format(call, grad, grad.sizes, suggest_format(call.env, grad));
  const TensorType* operands[] = {&call.tensor(0), &call.tensor(1)};
  auto placement = iterate(call.env, operands);
  if (!placement) return false;
  return give(call, operands[0]->dtype, operands[0]->device, placement->sizes, placement->strides);
}

constexpr OpRow kRandom[] = {
    GL_OP("rand", "default", random_of_sizes),
    GL_OP("rand", "generator", of_sizes_generator),
    GL_OP("randn", "default", random_of_sizes),
    GL_OP("randn", "generator", of_sizes_generator),
    GL_OP("randint", "default", integers_below),
    GL_OP("randint", "generator", integers_below_generator),
    GL_OP("randint", "low", integers_between),
    GL_OP("randint", "low_generator", integers_between_generator),
    GL_OP("randperm", "default", permutation),
    GL_OP("randperm", "generator", permutation_generator),
    GL_OP("rand_like", "default", random_like),
    GL_OP("randn_like", "default", random_like),
    GL_OP("randint_like", "default", integers_like),
    GL_OP("randint_like", "low_dtype", integers_like_between),
    GL_OP("bernoulli", "default", contiguous_as<0>),
    GL_OP("bernoulli", "p", contiguous_as<0>),
    GL_OP("bernoulli", "Tensor", random_preserved),
    GL_OP("bernoulli_", "float", give_self_in_place),
    GL_OP("bernoulli_", "Tensor", give_self_in_place),
    GL_OP("uniform", "default", random_preserved),
    GL_OP("uniform_", "default", give_self_in_place),
    GL_OP("normal_", "default", give_self_in_place),
    GL_OP("normal_functional", "default", random_preserved),
    GL_OP("normal", "Tensor_float", contiguous_as<0>),
    GL_OP("normal", "float_Tensor", contiguous_as<1>),
    GL_OP("normal", "Tensor_Tensor", normal_of_two),
    GL_OP("exponential", "default", random_preserved),
    GL_OP("exponential_", "default", give_self_in_place),
    GL_OP("log_normal", "default", random_preserved),
    GL_OP("log_normal_", "default", give_self_in_place),
    GL_OP("cauchy", "default", random_preserved),
    GL_OP("cauchy_", "default", give_self_in_place),
    GL_OP("geometric", "default", random_preserved),
    GL_OP("geometric_", "default", give_self_in_place),
    GL_OP("random", "default", random_preserved),
    GL_OP("random", "from", random_preserved),
    GL_OP("random", "to", random_preserved),
    GL_OP("random_", "default", give_self_in_place),
    GL_OP("random_", "from", give_self_in_place),
    GL_OP("random_", "to", give_self_in_place),
    GL_OP("multinomial", "default", multinomial),
    GL_OP("native_dropout", "default", dropout),
    GL_OP("native_dropout_backward", "default", dropout_backward),
};

}  // namespace

std::span<const OpRow> random_rows() { return kRandom; }

}  // namespace graphlift::ops
