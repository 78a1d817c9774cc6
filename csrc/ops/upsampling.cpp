// Owns: rows of resampling on grids: interpolation, grid sampling, pixel shuffles, columns of windows.
// Must not: hold pooling or padding.
#include <array>

#include "ops/family.h"
#include "ops/results.h"

namespace graphlift::ops {
namespace {

using ir::Dims;
using ir::Sym;
using ir::TensorType;

// self, output_size, ...
template <size_t D>
bool upsample(ShapeCall& call) {
  const TensorType& self = call.tensor(0);
  const Dims wanted = call.syms(1);
  if (self.sizes.size() != D + 2 || wanted.size() != D) return false;
  for (size_t i = 1; i < D + 2; ++i)
    if (equal(call.env, self.sizes[i], 0)) return false;
  Dims sizes = {self.sizes[0], self.sizes[1]};
  for (const Sym& size : wanted) {
    if (!less(call.env, 0, size)) return false;
    sizes.push_back(size);
  }
  return give_format(call, self, std::move(sizes), suggest_format(call.env, self));
}

// grad, output_size, input_size, ...
template <size_t D>
bool upsample_backward(ShapeCall& call) {
  const TensorType& grad = call.tensor(0);
  const Dims sizes = call.syms(2);
  if (sizes.size() != D + 2) return false;
  return give_format(call, grad, sizes, suggest_format(call.env, grad));
}

bool contiguous_backward(ShapeCall& call) { return give_contiguous(call, call.tensor(0), call.syms(2)); }

// input[N, C, ...], grid[N, out..., D].
template <size_t D>
bool grid_sample(ShapeCall& call) {
  const TensorType& input = call.tensor(0);
  const TensorType& grid = call.tensor(1);
  if (input.sizes.size() != D + 2 || grid.sizes.size() != D + 2 || input.dtype != grid.dtype) return false;
  if (!equal(call.env, input.sizes[0], grid.sizes[0]) || !equal(call.env, grid.sizes.back(), static_cast<int64_t>(D)))
    return false;
  Dims sizes = {input.sizes[0], input.sizes[1]};
  sizes.insert(sizes.end(), grid.sizes.begin() + 1, grid.sizes.end() - 1);
  return give_contiguous(call, input, std::move(sizes));
}

// grad, input, grid, interpolation_mode, padding_mode, align_corners, output_mask.
bool grid_sample_backward(ShapeCall& call) {
  const TensorType& input = call.tensor(1);
  const TensorType& grid = call.tensor(2);
  call.booleans(6)[0] ? give_contiguous(call, input, input.sizes) : give_undefined(call);
  return give_contiguous(call, grid, grid.sizes);
}

// A reshape, copied where it cannot be a view.
void reshape(ShapeCall& call, TensorType& type, Dims sizes) {
  auto strides = view_strides(call.env, type, sizes);
  type.strides = strides ? std::move(*strides) : contiguous(sizes);
  type.sizes = std::move(sizes);
}

// `split` with its dims in the given order (from the third last of the result on), joined to `sizes`. On CPU a kernel
// does it.
bool shuffled(ShapeCall& call, Dims split, const std::array<int, 5>& order, Dims sizes) {
  TensorType type = call.tensor(0);
  if (type.device.is_cpu()) return give_format(call, type, std::move(sizes), suggest_format(call.env, type));
  const size_t lead = split.size() - 5;
  reshape(call, type, std::move(split));
  const TensorType before = type;
  for (size_t i = 0; i < 5; ++i) {
    type.sizes[lead + i] = before.sizes[lead + static_cast<size_t>(order[i])];
    type.strides[lead + i] = before.strides[lead + static_cast<size_t>(order[i])];
  }
  // The last reshape must copy: a result that shares memory is no result of this operator.
  if (view_strides(call.env, type, sizes)) return false;
  return give_contiguous(call, type.dtype, type.device, std::move(sizes));
}

// self, factor: channels become pixels.
bool pixel_shuffle(ShapeCall& call) {
  const TensorType& self = call.tensor(0);
  const Sym factor = call.integer(1);
  if (self.rank() < 3 || factor.constant() <= 0) return false;
  Dims sizes = self.sizes;
  const size_t channel = sizes.size() - 3;
  if (!equal(call.env, mod(sizes[channel], factor * factor), 0)) return false;
  sizes[channel] = floordiv(sizes[channel], factor * factor);
  Dims split(sizes.begin(), sizes.begin() + static_cast<ptrdiff_t>(channel) + 1);
  split.insert(split.end(), {factor, factor, sizes[channel + 1], sizes[channel + 2]});
  for (size_t i = channel + 1; i < sizes.size(); ++i) sizes[i] = sizes[i] * factor;
  return shuffled(call, std::move(split), {0, 3, 1, 4, 2}, std::move(sizes));
}

bool pixel_unshuffle(ShapeCall& call) {
  const TensorType& self = call.tensor(0);
  const Sym factor = call.integer(1);
  if (self.rank() < 3 || factor.constant() <= 0) return false;
  // Torch's kernel gives one without elements back as it is.
  if (self.device.is_cpu() && is_empty(call.env, self.sizes)) return give_preserved(call, self, self.dtype);
  Dims sizes = self.sizes;
  const size_t channel = sizes.size() - 3;
  for (size_t i = channel + 1; i < sizes.size(); ++i) {
    if (!equal(call.env, mod(sizes[i], factor), 0)) return false;
    sizes[i] = floordiv(sizes[i], factor);
  }
  Dims split(sizes.begin(), sizes.begin() + static_cast<ptrdiff_t>(channel) + 1);
  split.insert(split.end(), {sizes[channel + 1], factor, sizes[channel + 2], factor});
  sizes[channel] = sizes[channel] * factor * factor;
  return shuffled(call, std::move(split), {0, 2, 4, 1, 3}, std::move(sizes));
}

// self[(N), C, H, W], kernel_size, dilation, padding, stride.
bool im2col(ShapeCall& call) {
  const TensorType& self = call.tensor(0);
  const Dims kernel = call.syms(1), dilation = call.syms(2), padding = call.syms(3), stride = call.syms(4);
  if (self.rank() != 3 && self.rank() != 4) return false;
  for (const Dims* list : {&kernel, &dilation, &padding, &stride})
    if (list->size() != 2) return false;
  const size_t channel = self.sizes.size() - 3;
  Sym places = 1;
  for (size_t i = 0; i < 2; ++i) {
    const Sym span = self.sizes[channel + 1 + i] + padding[i] * 2 - dilation[i] * (kernel[i] - 1) - 1;
    if (less(call.env, span, 0)) return false;
    places = places * (floordiv(span, stride[i]) + 1);
  }
  Dims sizes(self.sizes.begin(), self.sizes.begin() + static_cast<ptrdiff_t>(channel));
  sizes.push_back(self.sizes[channel] * kernel[0] * kernel[1]);
  sizes.push_back(places);
  return give_contiguous(call, self, std::move(sizes));
}

// self[(N), C * kernel, L], output_size, kernel_size, dilation, padding, stride.
bool col2im(ShapeCall& call) {
  const TensorType& self = call.tensor(0);
  const Dims wanted = call.syms(1), kernel = call.syms(2);
  if ((self.rank() != 2 && self.rank() != 3) || wanted.size() != 2 || kernel.size() != 2) return false;
  const size_t channel = self.sizes.size() - 2;
  const Sym window = kernel[0] * kernel[1];
  if (!equal(call.env, mod(self.sizes[channel], window), 0)) return false;
  Dims sizes(self.sizes.begin(), self.sizes.begin() + static_cast<ptrdiff_t>(channel));
  sizes.push_back(floordiv(self.sizes[channel], window));
  sizes.push_back(wanted[0]);
  sizes.push_back(wanted[1]);
  return give_contiguous(call, self, std::move(sizes));
}

#define UPSAMPLE(name, dims) \
  GL_OP(name, "default", upsample<dims>), GL_OP(name "_backward", "default", upsample_backward<dims>)

constexpr OpRow kUpsampling[] = {
    UPSAMPLE("upsample_nearest1d", 1),
    UPSAMPLE("upsample_nearest2d", 2),
    GL_OP("upsample_nearest3d", "default", upsample<3>),
    GL_OP("upsample_nearest3d_backward", "default", contiguous_backward),
    UPSAMPLE("_upsample_nearest_exact1d", 1),
    UPSAMPLE("_upsample_nearest_exact2d", 2),
    GL_OP("_upsample_nearest_exact3d", "default", upsample<3>),
    GL_OP("_upsample_nearest_exact3d_backward", "default", contiguous_backward),
    UPSAMPLE("upsample_linear1d", 1),
    UPSAMPLE("upsample_bilinear2d", 2),
    GL_OP("upsample_bicubic2d", "default", upsample<2>),
    GL_OP("upsample_bicubic2d_backward", "default", contiguous_backward),
    UPSAMPLE("upsample_trilinear3d", 3),
    UPSAMPLE("_upsample_bilinear2d_aa", 2),
    GL_OP("_upsample_bicubic2d_aa", "default", upsample<2>),
    GL_OP("_upsample_bicubic2d_aa_backward", "default", contiguous_backward),
    GL_OP("grid_sampler_2d", "default", grid_sample<2>),
    GL_OP("grid_sampler_3d", "default", grid_sample<3>),
    GL_OP("grid_sampler_2d_backward", "default", grid_sample_backward),
    GL_OP("grid_sampler_3d_backward", "default", grid_sample_backward),
    GL_OP("pixel_shuffle", "default", pixel_shuffle),
    GL_OP("pixel_unshuffle", "default", pixel_unshuffle),
    GL_OP("im2col", "default", im2col),
    GL_OP("col2im", "default", col2im),
};

}  // namespace

std::span<const OpRow> upsampling_rows() { return kUpsampling; }

}  // namespace graphlift::ops
