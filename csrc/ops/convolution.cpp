// Owns: rows of convolution and its gradient. Must not: hold pooling.
#include "ops/family.h"
#include "ops/results.h"

namespace graphlift::ops {
namespace {

using ir::Dims;
using ir::DType;
using ir::Sym;
using ir::TensorType;

// input, weight, bias, stride, padding, dilation, transposed, output_padding, groups from argument `first` on.
struct Convolution {
  const TensorType& input;
  const TensorType& weight;
  Dims stride, padding, dilation, output_padding;
  bool transposed;
  Sym groups;
};

// A list of one stands for every spatial dim.
std::optional<Dims> spatial(Dims list, size_t dims) {
  if (list.size() == 1) list.resize(dims, list[0]);
  if (list.size() != dims) return std::nullopt;
  return list;
}

Sym output_size(const Convolution& conv, size_t i) {
  const Sym kernel = conv.dilation[i] * (conv.weight.sizes[i + 2] - 1);
  const Sym input = conv.input.sizes[i + 2];
  if (conv.transposed) return (input - 1) * conv.stride[i] - conv.padding[i] * 2 + kernel + conv.output_padding[i] + 1;
  const Sym span = input + conv.padding[i] * 2 - kernel - 1;
  return (conv.stride[i].same(1) ? span : floordiv(span, conv.stride[i])) + 1;
}

bool is_channels_last(ShapeCall& call, const TensorType& type) {
  return suggest_format(call.env, type) != Format::Contiguous;
}

// The format that the kernel works in: channels last when input or weight is.
Format kernel_format(ShapeCall& call, const Convolution& conv) {
  const int rank = conv.input.rank();
  if (rank < 4) return Format::Contiguous;
  const Format last = rank == 4 ? Format::ChannelsLast : Format::ChannelsLast3d;
  if (!is_channels_last(call, conv.input) && !is_channels_last(call, conv.weight)) return Format::Contiguous;
  if (conv.input.device.is_cpu()) return last;
  // On CUDA float64 never is.
  return conv.input.dtype == DType::float64 ? Format::Contiguous : last;
}

std::optional<Convolution> read(ShapeCall& call, size_t input, size_t weight, size_t stride) {
  if (!call.is_tensor(input) || !call.is_tensor(weight)) return std::nullopt;
  Convolution conv{call.tensor(input),       call.tensor(weight), {}, {}, {}, {},
                   call.boolean(stride + 3), call.sym(stride + 5)};
  const int rank = conv.input.rank();
  if (rank < 3 || rank > 5 || conv.weight.rank() != rank) return std::nullopt;
  if (conv.input.dtype != conv.weight.dtype || conv.input.device != conv.weight.device) return std::nullopt;
  const size_t dims = static_cast<size_t>(rank) - 2;
  Dims* lists[] = {&conv.stride, &conv.padding, &conv.dilation};
  for (size_t i = 0; i < 3; ++i) {
    auto list = spatial(call.syms(stride + i), dims);
    if (!list) return std::nullopt;
    *lists[i] = std::move(*list);
  }
  auto extra = spatial(call.syms(stride + 4), dims);
  if (!extra && conv.transposed) return std::nullopt;
  if (extra) conv.output_padding = std::move(*extra);
  for (const Sym& step : conv.stride)
    if (!less(call.env, 0, step)) return std::nullopt;
  const Sym channels = conv.transposed ? conv.weight.sizes[0] : conv.weight.sizes[1] * conv.groups;
  if (!equal(call.env, conv.input.sizes[1], channels)) return std::nullopt;
  return conv;
}

bool convolution(ShapeCall& call) {
  auto conv = read(call, 0, 1, 3);
  if (!conv) return false;
  Dims sizes = {conv->input.sizes[0], conv->transposed ? conv->weight.sizes[1] * conv->groups : conv->weight.sizes[0]};
  if (const TensorType* bias = call.optional_tensor(2))
    if (bias->rank() != 1 || bias->dtype != conv->input.dtype || !equal(call.env, bias->sizes[0], sizes[1]))
      return false;
  for (size_t i = 0; i < conv->stride.size(); ++i) {
    sizes.push_back(output_size(*conv, i));
    if (!less(call.env, 0, sizes.back())) return false;
  }
  return give_format(call, conv->input, std::move(sizes), kernel_format(call, *conv));
}

// The plain CPU kernels make the gradient of the weight group by group: with one channel each its format is not told.
bool joined_by_group(ShapeCall& call, const Convolution& conv, Format format) {
  return format != Format::Contiguous && conv.input.device.is_cpu() && conv.input.dtype == DType::float64 &&
         !conv.groups.same(1) && equal(call.env, conv.weight.sizes[1], 1);
}

// grad, input, weight, bias_sizes, stride, padding, dilation, transposed, output_padding, groups, output_mask.
bool convolution_backward(ShapeCall& call) {
  auto conv = read(call, 1, 2, 4);
  if (!conv) return false;
  const Format format = kernel_format(call, *conv);
  const auto wanted = call.booleans(10);
  if (wanted.size() != 3 || (wanted[1] && joined_by_group(call, *conv, format))) return false;
  wanted[0] ? give_format(call, conv->input, conv->input.sizes, format) : give_undefined(call);
  wanted[1] ? give_format(call, conv->weight, conv->weight.sizes, format) : give_undefined(call);
  return wanted[2] ? give_contiguous(call, conv->input, {call.tensor(0).sizes[1]}) : give_undefined(call);
}

constexpr OpRow kConvolution[] = {
    GL_OP("convolution", "default", convolution),
    GL_OP("convolution_backward", "default", convolution_backward),
};

}  // namespace

std::span<const OpRow> convolution_rows() { return kConvolution; }

}  // namespace graphlift::ops
