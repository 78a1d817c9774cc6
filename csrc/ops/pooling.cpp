// Owns: rows of pooling and its gradients. Must not: hold convolution.
#include "ops/family.h"
#include "ops/results.h"

namespace graphlift::ops {
namespace {

using ir::Dims;
using ir::DType;
using ir::Sym;
using ir::TensorType;

Sym at_or_only(const Dims& list, size_t i) { return list.size() == 1 ? list[0] : list[i]; }

struct Window {
  Dims kernel, stride, padding, dilation;
  bool ceil = false;
};

std::optional<Sym> pooled_size(ShapeCall& call, const Sym& size, const Window& window, size_t i) {
  const Sym stride = at_or_only(window.stride, i), padding = at_or_only(window.padding, i);
  const Sym reach = at_or_only(window.dilation, i) * (at_or_only(window.kernel, i) - 1);
  if (!less(call.env, 0, stride) || less(call.env, padding, 0)) return std::nullopt;
  if (less(call.env, at_or_only(window.kernel, i), padding * 2)) return std::nullopt;
  Sym span = size + padding * 2 - reach - 1;
  if (window.ceil) span = span + stride - 1;
  const bool unit = stride.is_constant() && stride.constant() == 1;
  Sym pooled = (unit ? span : floordiv(span, stride)) + 1;
  // The last window must start inside the tensor or its left padding.
  if (window.ceil && at_most(call.env, size + padding, (pooled - 1) * stride)) pooled = pooled - 1;
  if (less(call.env, pooled, 1)) return std::nullopt;
  return pooled;
}

// Sizes with the last `dims` ones pooled; nullopt when the rank or a size does not fit.
std::optional<Dims> pooled_sizes(ShapeCall& call, const Window& window, size_t dims) {
  const TensorType& self = call.tensor(0);
  const size_t rank = self.sizes.size();
  if (rank != dims + 1 && rank != dims + 2) return std::nullopt;
  for (const Dims* list : {&window.kernel, &window.stride, &window.padding, &window.dilation})
    if (list->size() != 1 && list->size() != dims) return std::nullopt;
  Dims sizes = self.sizes;
  for (size_t i = 0; i < dims; ++i) {
    auto pooled = pooled_size(call, self.sizes[rank - dims + i], window, i);
    if (!pooled) return std::nullopt;
    sizes[rank - dims + i] = *pooled;
  }
  for (size_t i = rank == dims + 2 ? 1 : 0; i < rank; ++i)
    if (equal(call.env, self.sizes[i], 0)) return std::nullopt;
  return sizes;
}

Dims or_kernel(Dims stride, const Dims& kernel) { return stride.empty() ? kernel : stride; }

// self, kernel_size, stride, padding, dilation, ceil_mode.
template <size_t D>
bool max_pool(ShapeCall& call) {
  const Dims kernel = call.syms(1);
  auto sizes =
      pooled_sizes(call, {kernel, or_kernel(call.syms(2), kernel), call.syms(3), call.syms(4), call.boolean(5)}, D);
  if (!sizes) return false;
  const TensorType& self = call.tensor(0);
  const Format format = suggest_format(call.env, self);
  TensorType index = self;
  index.dtype = DType::int64;
  return give_format(call, self, *sizes, format) && give_format(call, index, *sizes, format);
}

// self, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override.
template <size_t D>
bool average_pool(ShapeCall& call) {
  const Dims kernel = call.syms(1);
  const TensorType& self = call.tensor(0);
  if (!ir::is_floating(self.dtype) && self.dtype != DType::int64) return false;
  auto sizes = pooled_sizes(call, {kernel, or_kernel(call.syms(2), kernel), call.syms(3), {1}, call.boolean(4)}, D);
  return sizes && give_format(call, self, *sizes, D == 2 ? suggest_format(call.env, self) : Format::Contiguous);
}

std::optional<Dims> adapted_sizes(ShapeCall& call, size_t dims) {
  const TensorType& self = call.tensor(0);
  const Dims wanted = call.syms(1);
  const size_t rank = self.sizes.size();
  if ((rank != dims + 1 && rank != dims + 2) || wanted.size() != dims) return std::nullopt;
  for (size_t i = rank == dims + 2 ? 1 : 0; i < rank; ++i)
    if (equal(call.env, self.sizes[i], 0)) return std::nullopt;
  Dims sizes = self.sizes;
  for (size_t i = 0; i < dims; ++i) sizes[rank - dims + i] = wanted[i];
  return sizes;
}

template <size_t D>
bool adaptive_average_pool(ShapeCall& call) {
  auto sizes = adapted_sizes(call, D);
  const TensorType& self = call.tensor(0);
  return sizes && give_format(call, self, *sizes, D == 2 ? suggest_format(call.env, self) : Format::Contiguous);
}

bool adaptive_max_pool(ShapeCall& call) {
  auto sizes = adapted_sizes(call, 2);
  if (!sizes) return false;
  const TensorType& self = call.tensor(0);
  const Format format = suggest_format(call.env, self);
  TensorType index = self;
  index.dtype = DType::int64;
  return give_format(call, self, *sizes, format) && give_format(call, index, *sizes, format);
}

// grad, self, ...
bool gradient(ShapeCall& call) {
  const TensorType& self = call.tensor(1);
  return give_format(call, self, self.sizes, suggest_format(call.env, self));
}
// On CUDA one channel decides between kernels by more than its strides.
bool adaptive_gradient(ShapeCall& call) {
  const TensorType& self = call.tensor(1);
  if (!self.device.is_cpu() && suggest_format(call.env, self) != Format::Contiguous &&
      equal(call.env, self.sizes[1], 1))
    return false;
  return gradient(call);
}
bool contiguous_gradient(ShapeCall& call) { return give_contiguous(call, call.tensor(1), call.tensor(1).sizes); }

constexpr OpRow kPooling[] = {
    GL_OP("max_pool2d_with_indices", "default", max_pool<2>),
    GL_OP("max_pool3d_with_indices", "default", max_pool<3>),
    GL_OP("max_pool2d_with_indices_backward", "default", gradient),
    GL_OP("max_pool3d_with_indices_backward", "default", gradient),
    GL_OP("avg_pool2d", "default", average_pool<2>),
    GL_OP("avg_pool3d", "default", average_pool<3>),
    GL_OP("avg_pool2d_backward", "default", gradient),
    GL_OP("avg_pool3d_backward", "default", contiguous_gradient),
    GL_OP("_adaptive_avg_pool2d", "default", adaptive_average_pool<2>),
    GL_OP("_adaptive_avg_pool3d", "default", adaptive_average_pool<3>),
    GL_OP("_adaptive_avg_pool2d_backward", "default", adaptive_gradient),
    GL_OP("_adaptive_avg_pool3d_backward", "default", contiguous_gradient),
    GL_OP("adaptive_max_pool2d", "default", adaptive_max_pool),
    GL_OP("adaptive_max_pool2d_backward", "default", gradient),
};

}  // namespace

std::span<const OpRow> pooling_rows() { return kPooling; }

}  // namespace graphlift::ops
