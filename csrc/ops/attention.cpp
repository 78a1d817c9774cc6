// Owns: rows of fused attention, forward and backward, CPU and CUDA. Queries are [batch, heads, length, size].
// Must not: choose an implementation; eager's choice is recorded as the operator.
#include "ops/family.h"
#include "ops/results.h"

namespace graphlift::ops {
namespace {

using ir::Dims;
using ir::DType;
using ir::Sym;
using ir::TensorType;

struct Query {
  const TensorType& query;
  const TensorType& key;
  const TensorType& value;
  Sym batch, heads, length, size;
};

std::optional<Query> read(ShapeCall& call, size_t first) {
  Query q{call.tensor(first), call.tensor(first + 1), call.tensor(first + 2), {}, {}, {}, {}};
  for (const TensorType* type : {&q.query, &q.key, &q.value})
    if (type->rank() != 4 || type->dtype != q.query.dtype || type->device != q.query.device) return std::nullopt;
  if (!equal(call.env, q.query.sizes[0], q.key.sizes[0]) || !equal(call.env, q.query.sizes[3], q.key.sizes[3]) ||
      !equal(call.env, q.key.sizes[2], q.value.sizes[2]))
    return std::nullopt;
  q.batch = q.query.sizes[0];
  q.heads = q.query.sizes[1];
  q.length = q.query.sizes[2];
  q.size = q.value.sizes[3];
  return q;
}

// [batch, heads, length, size] in memory as [batch, length, heads, size].
bool give_transposed(ShapeCall& call, const TensorType& like, const Dims& sizes) {
  Dims strides = contiguous({sizes[0], sizes[2], sizes[1], sizes[3]});
  std::swap(strides[1], strides[2]);
  return give(call, like.dtype, like.device, sizes, strides);
}

// Fresh memory in the format of [batch, length, heads, size], seen as [batch, heads, length, size].
bool give_like_transposed(ShapeCall& call, const TensorType& like) {
  TensorType type = like;
  std::swap(type.sizes[1], type.sizes[2]);
  std::swap(type.strides[1], type.strides[2]);
  type.strides = preserved_strides(call.env, type);
  std::swap(type.sizes[1], type.sizes[2]);
  std::swap(type.strides[1], type.strides[2]);
  return give(call, like.dtype, like.device, type.sizes, type.strides);
}

bool same_heads(ShapeCall& call, const Query& q) {
  return equal(call.env, q.query.sizes[1], q.key.sizes[1]) && equal(call.env, q.query.sizes[1], q.value.sizes[1]) &&
         equal(call.env, q.key.sizes[3], q.value.sizes[3]);
}

// query, key, value, dropout_p, is_causal, attn_mask, scale.
bool flash_cpu(ShapeCall& call) {
  auto q = read(call, 0);
  if (!q || !q->query.device.is_cpu() || !ir::is_floating(q->query.dtype) || !same_heads(call, *q)) return false;
  const DType dtype = q->query.dtype == DType::float64 ? DType::float64 : DType::float32;
  give_like_transposed(call, q->query);
  // In memory as [batch, length, heads].
  return give(call, dtype, q->query.device, {q->batch, q->heads, q->length}, {q->length * q->heads, 1, q->heads});
}

// grad, query, key, value, ...: gradients are laid out as the output is.
bool flash_backward_cpu(ShapeCall& call) {
  auto q = read(call, 1);
  if (!q || !q->query.device.is_cpu()) return false;
  for (const TensorType* type : {&q->query, &q->key, &q->value}) give_transposed(call, *type, type->sizes);
  return true;
}

bool is_half(DType dtype) { return dtype == DType::float16 || dtype == DType::bfloat16; }

// query, key, value, dropout_p, is_causal, return_debug_mask, scale -> output, logsumexp, cum_seq_q, cum_seq_k, max_q,
// max_k, rng_state, unused, debug_attn_mask.
bool flash_cuda(ShapeCall& call) {
  auto q = read(call, 0);
  if (!q || !q->query.device.is_cuda() || !is_half(q->query.dtype) || !same_heads(call, *q)) return false;
  if (call.boolean(5) || !equal(call.env, mod(q->size, 8), 0)) return false;
  const ir::Device device = q->query.device;
  give_like_transposed(call, q->query);
  give_contiguous(call, DType::float32, device, {q->batch, q->heads, q->length});
  for (int i = 0; i < 4; ++i) give_undefined(call);
  call.int_results = {q->length, q->key.sizes[2]};
  give_contiguous(call, DType::uint64, device, {2});
  give_contiguous(call, DType::uint64, device, {});
  return give_contiguous(call, q->query.dtype, device, {0});
}

// grad, query, key, value, ...
bool flash_backward_cuda(ShapeCall& call) {
  auto q = read(call, 1);
  if (!q || !q->query.device.is_cuda() || !same_heads(call, *q)) return false;
  for (const TensorType* type : {&q->query, &q->key, &q->value}) give_like_transposed(call, *type);
  return true;
}

// query, key, value, attn_bias, compute_log_sumexp, dropout_p, is_causal, scale.
bool efficient_cuda(ShapeCall& call) {
  auto q = read(call, 0);
  if (!q || !q->query.device.is_cuda() || !ir::is_floating(q->query.dtype)) return false;
  const ir::Device device = q->query.device;
  give_transposed(call, q->query, {q->batch, q->heads, q->length, q->size});
  const Sym rows = call.boolean(4) ? ceildiv(q->length, 32) * 32 : Sym(0);
  give_contiguous(call, DType::float32, device, {q->batch, q->heads, rows});
  give_contiguous(call, DType::int64, {}, {});
  return give_contiguous(call, DType::int64, {}, {});
}

// grad, query, key, value, attn_bias, out, logsumexp, seed, offset, dropout_p, grad_input_mask, is_causal, scale.
bool efficient_backward_cuda(ShapeCall& call) {
  auto q = read(call, 1);
  const auto wanted = call.booleans(10);
  if (!q || !q->query.device.is_cuda() || wanted.size() != 4 || wanted[3]) return false;
  for (const TensorType* type : {&q->query, &q->key, &q->value}) give_transposed(call, *type, type->sizes);
  return give_undefined(call);
}

// query, key, value, attn_bias, compute_log_sumexp, dropout_p, is_causal, return_debug_mask, scale -> output,
// logsumexp, cum_seq_q, cum_seq_k, max_q, max_k, seed, offset, debug_attn_mask.
bool cudnn(ShapeCall& call) {
  auto q = read(call, 0);
  if (!q || !q->query.device.is_cuda() || !is_half(q->query.dtype) || call.boolean(7)) return false;
  if (!equal(call.env, q->query.sizes[3], q->size)) return false;
  const ir::Device device = q->query.device;
  give_preserved(call, q->query, q->query.dtype);
  if (call.boolean(4))
    give_contiguous(call, DType::float32, device, {q->batch, q->heads, q->length, 1});
  else
    give_undefined(call);
  for (int i = 0; i < 4; ++i) give_undefined(call);
  call.int_results = {q->length, q->key.sizes[2]};
  give_contiguous(call, DType::int64, device, {});
  give_contiguous(call, DType::int64, device, {});
  return give_undefined(call);
}

// grad, query, key, value, ...
bool cudnn_backward(ShapeCall& call) {
  auto q = read(call, 1);
  if (!q || !q->query.device.is_cuda()) return false;
  for (const TensorType* type : {&q->query, &q->key, &q->value}) give_preserved(call, *type, type->dtype);
  return true;
}

// src, ...: what inference makes of a whole encoder layer.
bool encoder_layer(ShapeCall& call) {
  const TensorType& source = call.tensor(0);
  return source.rank() == 3 && give_contiguous(call, source, source.sizes);
}

// query, key, value, embed_dim, num_head, qkv_weight, qkv_bias, proj_weight, proj_bias, mask, need_weights,
// average_attn_weights, mask_type -> output, weights.
bool multi_head(ShapeCall& call) {
  const TensorType& query = call.tensor(0);
  const TensorType& key = call.tensor(1);
  if (query.rank() != 3 || key.rank() != 3 || !call.none(9)) return false;
  give_contiguous(call, query, {query.sizes[0], query.sizes[1], call.integer(3)});
  if (!call.boolean(10)) return give_undefined(call);
  Dims sizes = {query.sizes[0], query.sizes[1], key.sizes[1]};
  if (!call.boolean(11)) sizes.insert(sizes.begin() + 1, call.integer(4));
  return give_contiguous(call, query, std::move(sizes));
}

constexpr OpRow kAttention[] = {
    GL_OP("_transformer_encoder_layer_fwd", "default", encoder_layer),
    GL_OP("_native_multi_head_attention", "default", multi_head),
    GL_OP("_scaled_dot_product_flash_attention_for_cpu", "default", flash_cpu),
    GL_OP("_scaled_dot_product_flash_attention_for_cpu_backward", "default", flash_backward_cpu),
    GL_OP("_scaled_dot_product_flash_attention", "default", flash_cuda),
    GL_OP("_scaled_dot_product_flash_attention_backward", "default", flash_backward_cuda),
    GL_OP("_scaled_dot_product_cudnn_attention", "default", cudnn),
    GL_OP("_scaled_dot_product_cudnn_attention_backward", "default", cudnn_backward),
    GL_OP("_scaled_dot_product_efficient_attention", "default", efficient_cuda),
    GL_OP("_scaled_dot_product_efficient_attention_backward", "default", efficient_backward_cuda),
};

}  // namespace

std::span<const OpRow> attention_rows() { return kAttention; }

}  // namespace graphlift::ops
