// Owns: rows of layer, group, batch, RMS and weight normalization and their gradients. Must not: hold softmax.
#include <algorithm>

#include "ops/family.h"
#include "ops/results.h"

namespace graphlift::ops {
namespace {

using ir::Dims;
using ir::DType;
using ir::Sym;
using ir::TensorType;

DType accumulate_dtype(DType dtype) { return dtype == DType::float64 ? dtype : DType::float32; }

// The dtype of statistics: float32 when parameters are wider than the input; CUDA always accumulates.
DType statistics_dtype(const TensorType& input, const TensorType* parameter) {
  if (!input.device.is_cpu()) return accumulate_dtype(input.dtype);
  return parameter && parameter->dtype != input.dtype ? DType::float32 : input.dtype;
}

// Parameters wider than the input are for CPU alone.
bool parameters_fit(const TensorType& input, const TensorType* parameter) {
  return input.device.is_cpu() || !parameter || parameter->dtype == input.dtype;
}

bool give_optional(ShapeCall& call, bool wanted, const TensorType* like) {
  if (!wanted || !like) return give_undefined(call);
  return give_contiguous(call, *like, like->sizes);
}

// input, normalized_shape, weight, bias, eps.
bool layer_norm(ShapeCall& call) {
  const TensorType& input = call.tensor(0);
  const Dims shape = call.syms(1);
  if (!ir::is_floating(input.dtype) || shape.empty() || shape.size() > input.sizes.size()) return false;
  const size_t lead = input.sizes.size() - shape.size();
  for (size_t i = 0; i < shape.size(); ++i)
    if (!equal(call.env, input.sizes[lead + i], shape[i])) return false;
  for (size_t i : {2, 3})
    if (const TensorType* parameter = call.optional_tensor(i))
      if (!equal(call.env, parameter->sizes, shape)) return false;
  Dims statistics(input.sizes.begin(), input.sizes.begin() + static_cast<ptrdiff_t>(lead));
  statistics.resize(input.sizes.size(), 1);
  if (!parameters_fit(input, call.optional_tensor(2))) return false;
  const DType dtype = statistics_dtype(input, call.optional_tensor(2));
  give_contiguous(call, input, input.sizes);
  give_contiguous(call, dtype, input.device, statistics);
  return give_contiguous(call, dtype, input.device, statistics);
}

// grad, input, normalized_shape, mean, rstd, weight, bias, output_mask.
bool layer_norm_backward(ShapeCall& call) {
  const TensorType& input = call.tensor(1);
  const auto wanted = call.booleans(7);
  const Dims shape = call.syms(2);
  if (shape.size() > input.sizes.size() || !equal(call.env, call.tensor(0).sizes, input.sizes)) return false;
  const auto lead = static_cast<ptrdiff_t>(input.sizes.size() - shape.size());
  if (!equal(call.env, Dims(input.sizes.begin() + lead, input.sizes.end()), shape)) return false;
  Dims statistics(input.sizes.begin(), input.sizes.begin() + lead);
  statistics.resize(input.sizes.size(), 1);
  for (size_t i : {3, 4})
    if (!equal(call.env, call.tensor(i).sizes, statistics)) return false;
  for (size_t i : {5, 6})
    if (const TensorType* parameter = call.optional_tensor(i))
      if (!equal(call.env, parameter->sizes, shape)) return false;
  give_optional(call, wanted[0], &input);
  give_optional(call, wanted[1], call.optional_tensor(5));
  return give_optional(call, wanted[2], call.optional_tensor(6));
}

// input, weight, bias, N, C, HxW, group, eps.
bool group_norm(ShapeCall& call) {
  const TensorType& input = call.tensor(0);
  const Format format = input.device.is_cpu() ? suggest_format(call.env, input) : Format::Contiguous;
  if (!ir::is_floating(input.dtype) || !is_contiguous(call.env, input, format)) return false;
  const TensorType* weight = call.optional_tensor(1);
  if (!parameters_fit(input, weight)) return false;
  const DType dtype = weight && weight->dtype != input.dtype ? DType::float32 : input.dtype;
  const Dims statistics = {call.sym(3), call.sym(6)};
  give_format(call, input, input.sizes, format);
  give_contiguous(call, dtype, input.device, statistics);
  return give_contiguous(call, dtype, input.device, statistics);
}

// grad, input, mean, rstd, weight, N, C, HxW, group, output_mask.
bool group_norm_backward(ShapeCall& call) {
  const TensorType& input = call.tensor(1);
  const TensorType* weight = call.optional_tensor(4);
  const auto wanted = call.booleans(9);
  if (!input.device.is_cpu() && !is_contiguous(call.env, call.tensor(0))) return false;
  const Format format = input.device.is_cpu() ? suggest_format(call.env, input) : Format::Contiguous;
  wanted[0] ? give_format(call, input, input.sizes, format) : give_undefined(call);
  give_optional(call, wanted[1], weight);
  return give_optional(call, wanted[2], weight);
}

std::optional<Format> exact_format(ShapeCall& call, const TensorType& type) {
  for (Format format : {Format::Contiguous, Format::ChannelsLast3d, Format::ChannelsLast})
    if (is_contiguous(call.env, type, format)) return format;
  return std::nullopt;
}

// The result of batch norm over `input`: on CPU in its format, on CUDA with its order of strides.
bool give_normalized(ShapeCall& call, const TensorType& input) {
  if (!input.device.is_cpu()) return give_preserved(call, input, input.dtype);
  auto exact = exact_format(call, input);
  return give_format(call, input, input.sizes, exact ? *exact : suggest_format(call.env, input));
}

bool give_normalized_gradient(ShapeCall& call, const TensorType& input) {
  if (!input.device.is_cpu()) return give_preserved(call, input, input.dtype);
  return give_format(call, input, input.sizes, suggest_format(call.env, input));
}

// Behind the input stand weight, bias and, of four parameters, the running statistics.
bool batch_norm(ShapeCall& call, bool training, size_t parameters) {
  const TensorType& input = call.tensor(0);
  if (!ir::is_floating(input.dtype) || input.rank() < 2) return false;
  for (size_t i = 1; i <= parameters; ++i)
    if (const TensorType* parameter = call.optional_tensor(i))
      if (parameter->rank() != 1 || !equal(call.env, parameter->sizes[0], input.sizes[1])) return false;
  const TensorType* parameter = call.optional_tensor(1);
  const DType dtype = statistics_dtype(input, parameter);
  const bool has_statistics = training || !input.device.is_cpu();
  const Dims statistics = {has_statistics ? input.sizes[1] : Sym(0)};
  give_normalized(call, input);
  give_contiguous(call, dtype, input.device, statistics);
  return give_contiguous(call, dtype, input.device, statistics);
}

// input, weight, bias, running_mean, running_var, training, momentum, eps.
bool batch_norm_with_statistics(ShapeCall& call) { return batch_norm(call, call.boolean(5), 4); }
bool batch_norm_without_statistics(ShapeCall& call) { return batch_norm(call, call.boolean(3), 2); }
bool batch_norm_functional(ShapeCall& call) {
  if (!batch_norm_with_statistics(call)) return false;
  give_preserved(call, call.tensor(3), call.tensor(3).dtype);
  return give_preserved(call, call.tensor(4), call.tensor(4).dtype);
}

// CUDA has several kernels: some make all three gradients whatever is wanted, and outside training layouts differ.
bool known_on_cuda(ShapeCall& call, const TensorType& input, const std::vector<bool>& wanted) {
  if (call.none(2) || !wanted[0] || !wanted[1] || !wanted[2]) return false;
  if (same(input.strides, contiguous(input.sizes))) return true;
  return call.boolean(7) && is_contiguous(call.env, input, Format::ChannelsLast);
}

// grad, input, weight, running_mean, running_var, save_mean, save_invstd, train, eps, output_mask.
bool batch_norm_backward(ShapeCall& call) {
  const TensorType& input = call.tensor(1);
  const TensorType* weight = call.optional_tensor(2);
  const auto wanted = call.booleans(9);
  if (!input.device.is_cpu() && !known_on_cuda(call, input, wanted)) return false;
  if (input.rank() < 2 || !equal(call.env, call.tensor(0).sizes, input.sizes)) return false;
  for (size_t i = 2; i < 7; ++i)
    if (const TensorType* parameter = call.optional_tensor(i); parameter && (i < 5 || call.boolean(7)))
      if (parameter->rank() != 1 || !equal(call.env, parameter->sizes[0], input.sizes[1])) return false;
  const DType dtype = weight ? weight->dtype : statistics_dtype(input, nullptr);
  wanted[0] ? give_normalized_gradient(call, input) : give_undefined(call);
  for (int i : {1, 2}) wanted[i] ? give_contiguous(call, dtype, input.device, {input.sizes[1]}) : give_undefined(call);
  return true;
}

// The fourth result is memory that cuDNN asks for; its size is cuDNN's own and is not known to the graph.
bool cudnn_batch_norm(ShapeCall& call) {
  const TensorType& input = call.tensor(0);
  const TensorType& weight = call.tensor(1);
  const bool training = call.boolean(5);
  const Dims statistics = {training ? input.sizes[1] : Sym(0)};
  give_format(call, input, input.sizes, suggest_format(call.env, input));
  give_contiguous(call, weight, statistics);
  give_contiguous(call, weight, statistics);
  return give_contiguous(call, DType::uint8, input.device, {0});
}

// input, grad, weight, ...
bool cudnn_batch_norm_backward(ShapeCall& call) {
  const TensorType& input = call.tensor(0);
  const TensorType& weight = call.tensor(2);
  give_format(call, input, input.sizes, suggest_format(call.env, input));
  give_contiguous(call, weight, weight.sizes);
  return give_contiguous(call, weight, weight.sizes);
}

// input, normalized_shape, weight, eps.
bool rms_norm(ShapeCall& call) {
  const TensorType& input = call.tensor(0);
  const Dims shape = call.syms(1);
  if (input.device.is_cpu() || shape.empty() || shape.size() > input.sizes.size()) return false;
  Dims statistics(input.sizes.begin(), input.sizes.end() - static_cast<ptrdiff_t>(shape.size()));
  statistics.resize(input.sizes.size(), 1);
  give_contiguous(call, input, input.sizes);
  return give_contiguous(call, accumulate_dtype(input.dtype), input.device, statistics);
}

// grad, input, normalized_shape, rstd, weight, output_mask.
bool rms_norm_backward(ShapeCall& call) {
  const auto wanted = call.booleans(5);
  if (call.tensor(1).device.is_cpu()) return false;
  give_optional(call, wanted[0], &call.tensor(1));
  return give_optional(call, wanted[1], call.optional_tensor(4));
}

// v, g, dim.
bool weight_norm(ShapeCall& call) {
  const TensorType& v = call.tensor(0);
  const TensorType& g = call.tensor(1);
  const int64_t dim = call.integer(2);
  if (dim != 0 && dim != v.rank() - 1) return false;
  const DType norms =
      g.dtype == DType::bfloat16 || (!g.device.is_cpu() && g.dtype == DType::float16) ? DType::float32 : g.dtype;
  give_contiguous(call, v, v.sizes);
  return give(call, norms, g.device, g.sizes, g.strides);
}

// grad_w, saved_v, saved_g, saved_norms, dim.
bool weight_norm_backward(ShapeCall& call) {
  const TensorType& v = call.tensor(1);
  const TensorType& g = call.tensor(2);
  give_contiguous(call, v, v.sizes);
  return give_contiguous(call, g, g.sizes);
}

constexpr OpRow kNormalization[] = {
    GL_OP("native_layer_norm", "default", layer_norm),
    GL_OP("native_layer_norm_backward", "default", layer_norm_backward),
    GL_OP("native_group_norm", "default", group_norm),
    GL_OP("native_group_norm_backward", "default", group_norm_backward),
    GL_OP("native_batch_norm", "default", batch_norm_with_statistics),
    GL_OP("_native_batch_norm_legit", "default", batch_norm_with_statistics),
    GL_OP("_native_batch_norm_legit", "no_stats", batch_norm_without_statistics),
    GL_OP("_native_batch_norm_legit_functional", "default", batch_norm_functional),
    GL_OP("native_batch_norm_backward", "default", batch_norm_backward),
    GL_OP("cudnn_batch_norm", "default", cudnn_batch_norm),
    GL_OP("cudnn_batch_norm_backward", "default", cudnn_batch_norm_backward),
    GL_OP("_fused_rms_norm", "default", rms_norm),
    GL_OP("_fused_rms_norm_backward", "default", rms_norm_backward),
    GL_OP("_weight_norm_interface", "default", weight_norm),
    GL_OP("_weight_norm_interface_backward", "default", weight_norm_backward),
};

}  // namespace

std::span<const OpRow> normalization_rows() { return kNormalization; }

}  // namespace graphlift::ops
