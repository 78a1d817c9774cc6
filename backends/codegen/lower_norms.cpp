// Owns: lowering of layer, rms, group and batch norms and of their gradients.
#include <algorithm>
#include <cmath>
#include <limits>

#include "backends/codegen/lower_rule.h"
#include "ops/layout.h"

namespace graphlift::codegen {
namespace {

using ir::DType;
using Flags = std::vector<bool>;

// Elements in a sum over the dims.
Expr optional_or(LowerCall& call, size_t i, DType dtype, const Expr& like, double otherwise) {
  return call.none(i) ? like.number(otherwise) : call.operand(i, dtype);
}

// A one-dim value along `dim` of a tensor of `rank` dims.
Expr along(const Expr& x, int dim, int rank) {
  Value value = x.value();
  if (value->rank() == 0) return x;
  for (int i = dim + 1; i < rank; ++i) value = x.graph()->add_dim(value, value->rank());
  return {x.graph(), value};
}

Expr flat(const Expr& x, const Flags& dims) { return {x.graph(), x.graph()->drop_dims(x.value(), dims)}; }

// The last `rank of normalized_shape` dims.
Flags normalized_dims(LowerCall& call, size_t shape, int rank) {
  Flags dims(static_cast<size_t>(rank), false);
  for (size_t i = dims.size() - call.syms(shape).size(); i < dims.size(); ++i) dims[i] = true;
  return dims;
}

Expr reshaped(const Expr& x, ir::Dims sizes) { return {x.graph(), x.graph()->reshape(x.value(), std::move(sizes))}; }

// On a CPU: elsewhere it is not measured.
bool has_channels_last(const ir::TensorType& type) {
  return type.device.is_cpu() && type.rank() > 2 && type.strides[1].same(1) && !type.strides.back().same(1);
}

Flags others(Flags dims) {
  dims.flip();
  return dims;
}

// input, normalized_shape, weight, bias, eps. Results: output, mean, rstd.
bool layer_norm(LowerCall& call) {
  const DType dtype = DType::float32;
  if (*compute_type(call.out().dtype) != dtype) return false;
  const Expr x = call.operand(0, dtype);
  const Flags dims = normalized_dims(call, 1, x.rank());
  const ir::Sym elements = count(x, dims);
  if (elements.same(0)) return false;
  // Of no elements the mean is 0, and the other one is NaN.
  const Expr n = x.number(elements), some = x.number(max(elements, 1));
  const Expr mean = sum(x, dims) / some, off = x - mean;
  const Expr rstd = 1.0 / apply(Prim::Sqrt, sum(off * off, dims) / n + call.real(4));
  Expr y = off * rstd;
  if (!call.none(2)) y = y * call.operand(2, dtype);
  if (!call.none(3)) y = y + call.operand(3, dtype);
  call.give(y);
  return call.give(mean) && call.give(rstd);
}

// grad_out, input, normalized_shape, mean, rstd, weight, bias, output_mask.
bool layer_norm_backward(LowerCall& call) {
  const DType dtype = DType::float32;
  if (*compute_type(call.type(1).dtype) != dtype) return false;
  const Expr grad = call.operand(0, dtype), x = call.operand(1, dtype);
  const Flags dims = normalized_dims(call, 2, x.rank());
  const ir::Sym elements = count(x, dims);
  if (elements.same(0)) return false;
  const Expr n = x.number(elements), rstd = call.operand(4, dtype);
  const Expr xhat = (x - call.operand(3, dtype)) * rstd;
  const Expr scaled = call.none(5) ? grad : grad * call.operand(5, dtype);
  const Expr a = sum(scaled, dims) / n, b = sum(scaled * xhat, dims) / n;
  call.wants(0) ? call.give((scaled - a - xhat * b) * rstd) : call.give_nothing();
  call.wants(1) ? call.give(flat(sum(grad * xhat, others(dims)), others(dims))) : call.give_nothing();
  return call.wants(2) ? call.give(flat(sum(grad, others(dims)), others(dims))) : call.give_nothing();
}

// input, normalized_shape, weight, eps. Results: output, rstd.
bool rms_norm(LowerCall& call) {
  const DType dtype = DType::float32;
  if (*compute_type(call.out().dtype) != dtype) return false;
  const Expr x = call.operand(0, dtype);
  const Flags dims = normalized_dims(call, 1, x.rank());
  const ir::Sym elements = count(x, dims);
  if (elements.same(0)) return false;
  const double eps = call.none(3) ? std::numeric_limits<float>::epsilon() : call.real(3);
  const Expr rstd = 1.0 / apply(Prim::Sqrt, sum(x * x, dims) / x.number(elements) + eps);
  const Expr y = x * rstd;
  call.give(call.none(2) ? y : y * call.operand(2, dtype));
  return call.give(rstd);
}

// grad_out, input, normalized_shape, rstd, weight, output_mask.
bool rms_norm_backward(LowerCall& call) {
  const DType dtype = DType::float32;
  if (*compute_type(call.type(1).dtype) != dtype) return false;
  const Expr grad = call.operand(0, dtype), x = call.operand(1, dtype);
  const Flags dims = normalized_dims(call, 2, x.rank());
  const ir::Sym elements = count(x, dims);
  if (elements.same(0)) return false;
  const Expr rstd = call.operand(3, dtype), xhat = x * rstd;
  const Expr scaled = call.none(4) ? grad : grad * call.operand(4, dtype);
  const Expr b = sum(scaled * xhat, dims) / x.number(elements);
  call.wants(0) ? call.give((scaled - xhat * b) * rstd) : call.give_nothing();
  const bool weighted = call.wants(1) && !call.none(4);
  return weighted ? call.give(flat(sum(grad * xhat, others(dims)), others(dims))) : call.give_nothing();
}

Flags all_but(int rank, int kept) {
  Flags dims(static_cast<size_t>(rank), true);
  dims[static_cast<size_t>(kept)] = false;
  return dims;
}

// weight * n / (n - 1).
Expr unbiased(const Expr& like, const ir::Sym& n, double weight) {
  if (!n.is_constant()) return like.number(n) * weight / like.number(n - 1);
  const auto elements = static_cast<double>(n.constant());
  return like.number(weight * elements / (elements - 1));
}

// --- batches
// -----------------------------------------------------------------------------------------------------------

// What a batch norm of this dtype is computed with.
std::optional<DType> norm_type(const ir::TensorType& input) {
  const auto type = compute_type(input.dtype);
  return type && ir::is_floating(*type) ? type : std::nullopt;
}

struct Moments {
  Expr mean, variance;  // dims of statistics stay
};

// Mean and variance by two passes, the second one about the mean of the first.
Moments in_turn(const Expr& x, const Flags& dims, const ir::Sym& elements) {
  const Expr n = x.number(elements), mean = sum(x, dims) / n, off = x - mean;
  return {mean, sum(off * off, dims) / n};
}

// A size that is no number is two or more where it is one of an input.
bool is_some(const ir::Sym& size) {
  if (size.is_constant()) return size.constant() > 0;
  std::vector<ir::SymbolId> symbols;
  size.collect(&symbols);
  return symbols.size() == 1 && size.same(ir::Sym::symbol(symbols[0]));
}

// The first element of each channel in double; 0 where it is infinite or NaN, which is left to the sums.
std::optional<Expr> first_of_channel(const Expr& x) {
  if (memory_of(x.value())->kind != TensorNode::Kind::Buffer) return std::nullopt;
  if (!std::all_of(x.sizes().begin(), x.sizes().end(), is_some)) return std::nullopt;
  ir::Dims sizes(x.sizes().size(), 1);
  sizes[1] = x.sizes()[1];
  std::vector<ViewDim> dims(sizes.size());
  dims[1].from = 1;
  const Value view = x.graph()->view(x.value(), std::move(sizes), std::move(dims));
  const Expr first = Expr(x.graph(), view).cast(DType::float64);
  return select(apply(Prim::Abs, first) < INFINITY, first, first.number(0.0));
}

// Mean and variance by one pass, in double: squares of single numbers in float32 are exact. About the first element a
// small variance beside a large mean loses nothing: that element's own distance from the mean is in the variance.
std::optional<Moments> at_once(LowerCall& call, const Expr& x, const Flags& dims, const ir::Sym& elements) {
  if (call.moments == MomentPasses::Two) return std::nullopt;
  const Expr wide = x.cast(DType::float64), n = wide.number(elements);
  auto variance = [&](const Expr& squares, const Expr& mean) {
    return apply(Prim::Max, squares - mean * mean, 0.0).cast(x.type());
  };
  if (call.moments == MomentPasses::One) {
    if (x.type() != DType::float32) return std::nullopt;
    const Expr mean = sum(wide, dims) / n, squares = sum(wide * wide, dims) / n;
    return Moments{mean.cast(x.type()), variance(squares, mean)};
  }
  const auto first = first_of_channel(call.tensor(0));
  if (!first) return std::nullopt;
  const Expr off = wide - *first, mean = sum(off, dims) / n, squares = sum(off * off, dims) / n;
  return Moments{(*first + mean).cast(x.type()), variance(squares, mean)};
}

struct Normalized {
  Expr y, mean, variance, rstd;  // dims of statistics stay
  Flags dims;
  ir::Sym elements;
};

// (x - mean) * rstd * weight + bias; weight and bias are arguments 1 and 2.
Expr scaled(LowerCall& call, const Expr& x, const Expr& mean, const Expr& rstd) {
  Expr y = (x - mean) * rstd;
  if (!call.none(1)) y = y * along(call.operand(1, x.type()), 1, x.rank());
  if (!call.none(2)) y = y + along(call.operand(2, x.type()), 1, x.rank());
  return y;
}

// input, weight, bias.
std::optional<Normalized> normalized(LowerCall& call, double eps) {
  const auto dtype = norm_type(call.type(0));
  if (!dtype) return std::nullopt;
  const Expr x = call.operand(0, *dtype);
  const Flags dims = all_but(x.rank(), 1);
  const ir::Sym elements = count(x, dims);
  if (elements.same(0) || elements.same(1)) return std::nullopt;
  const auto made = at_once(call, x, dims, elements);
  const auto [mean, variance] = made ? *made : in_turn(x, dims, elements);
  const Expr rstd = 1.0 / apply(Prim::Sqrt, variance + eps);
  return Normalized{scaled(call, x, mean, rstd), mean, variance, rstd, dims, elements};
}

// Results: output, save_mean, save_invstd.
bool by_statistics_of_batch(LowerCall& call, double eps) {
  const auto y = normalized(call, eps);
  return y && call.give(y->y) && call.give(flat(y->mean, y->dims)) && call.give(flat(y->rstd, y->dims));
}

// The same results; on CPU the last two have no elements. As in eager's kernel x * scale + shift, both made once per
// channel.
bool by_running_statistics(LowerCall& call, double eps) {
  const auto dtype = norm_type(call.type(0));
  if (!dtype) return false;
  const Expr x = call.operand(0, *dtype), mean = call.operand(3, *dtype);
  const Expr rstd = 1.0 / apply(Prim::Sqrt, call.operand(4, *dtype) + eps);
  ir::Dims sizes(x.sizes().size(), 1);
  sizes[1] = x.sizes()[1];
  // Where lanes run along channels it would be computed for each pixel: it is put in memory.
  const Expr factor = has_channels_last(call.type(0))
                          ? reshaped({x.graph(), x.graph()->map(Prim::Copy, {rstd.value()})}, std::move(sizes))
                          : along(rstd, 1, x.rank());
  call.give(scaled(call, x, along(mean, 1, x.rank()), factor));
  for (size_t i : {1, 2}) {
    const Expr& kept = i == 1 ? mean : rstd;
    const bool none = call.out(i).sizes[0].same(0);
    const Expr nothing(x.graph(), x.graph()->map(Prim::Copy, {x.graph()->expand(x.number(0.0).value(), {0})}));
    call.give(none ? nothing : kept);
  }
  return true;
}

// input, weight, bias, training, momentum, eps.
bool batch_norm_without_statistics(LowerCall& call) {
  return call.boolean(3) && by_statistics_of_batch(call, call.real(5));
}

// input, weight, bias, running_mean, running_var, training, momentum, eps. Running statistics would be written in
// place.
bool native_batch_norm(LowerCall& call) {
  const bool has_statistics = !call.none(3) && !call.none(4), training = call.boolean(5);
  if (training) return call.none(3) && call.none(4) && by_statistics_of_batch(call, call.real(7));
  return has_statistics && by_running_statistics(call, call.real(7));
}

// input, weight, bias, running_mean, running_var, training, momentum, eps.
// Results: output, save_mean, save_invstd, new running mean, new running variance.
bool batch_norm_functional(LowerCall& call) {
  if (!call.boolean(5)) return false;
  const auto y = normalized(call, call.real(7));
  if (!y) return false;
  const DType dtype = y->y.type();
  const Expr mean = flat(y->mean, y->dims), variance = flat(y->variance, y->dims);
  const double m = call.real(6);
  call.give(y->y);
  call.give(mean);
  call.give(flat(y->rstd, y->dims));
  call.give(call.operand(3, dtype) * (1 - m) + mean * m);
  return call.give(call.operand(4, dtype) * (1 - m) + variance * unbiased(variance, y->elements, m));
}

// grad_out, input, weight, running_mean, running_var, save_mean, save_invstd, train, eps, output_mask.
bool batch_norm_backward(LowerCall& call) {
  const auto type = norm_type(call.type(1));
  if (!type) return false;
  const DType dtype = *type;
  const Expr grad = call.operand(0, dtype), x = call.operand(1, dtype);
  const int rank = x.rank();
  const Flags dims = all_but(rank, 1);
  const ir::Sym elements = count(x, dims);
  if (elements.same(0)) return false;
  const Expr n = x.number(elements);
  const bool train = call.boolean(7);
  const Expr mean = along(call.operand(train ? 5 : 3, dtype), 1, rank);
  const Expr rstd = train ? along(call.operand(6, dtype), 1, rank)
                          : 1.0 / apply(Prim::Sqrt, along(call.operand(4, dtype), 1, rank) + call.real(8));
  const Expr off = x - mean;
  const Expr total = sum(grad, dims), dot = sum(grad * off, dims);
  const Expr weight = along(optional_or(call, 2, dtype, x, 1), 1, rank);
  if (call.wants(0)) {
    const Expr scale = rstd * weight;
    call.give(train ? (grad - total / n - off * (dot * rstd * rstd / n)) * scale : grad * scale);
  } else {
    call.give_nothing();
  }
  call.wants(1) ? call.give(flat(dot * rstd, dims)) : call.give_nothing();
  return call.wants(2) ? call.give(flat(total, dims)) : call.give_nothing();
}

// --- groups of channels ----------------------------------------------------------------------------------------------

// Dim 1 as groups and the channels of one.
std::optional<ir::Dims> grouped_sizes(const ir::TensorType& type, const ir::Sym& groups) {
  if (type.rank() < 2 || !type.sizes[1].is_constant() || !groups.is_constant() || groups.constant() < 1) return {};
  if (type.sizes[1].constant() == 0 || type.sizes[1].constant() % groups.constant() != 0) return {};
  ir::Dims sizes = {type.sizes[0], groups, type.sizes[1].constant() / groups.constant()};
  sizes.insert(sizes.end(), type.sizes.begin() + 2, type.sizes.end());
  return sizes;
}

// A value per channel, or per image and group, beside [images, groups, channels of one, ...].
Expr per_channel(const Expr& x, const ir::Dims& grouped) {
  ir::Dims sizes(grouped.size(), 1);
  sizes[1] = grouped[1];
  sizes[2] = grouped[2];
  return reshaped(x, std::move(sizes));
}
Expr per_group(const Expr& x, const ir::Dims& grouped) {
  ir::Dims sizes(grouped.size(), 1);
  sizes[0] = grouped[0];
  sizes[1] = grouped[1];
  return reshaped(x, std::move(sizes));
}

Flags within_groups(const ir::Dims& grouped) {
  Flags dims(grouped.size(), true);
  dims[0] = dims[1] = false;
  return dims;
}

// --- channels last: sums per image and channel first, along which memory is read in its order
// --------------------------

// Sizes of the groups with one pixel.
ir::Dims without_pixels(ir::Dims grouped) {
  std::fill(grouped.begin() + 3, grouped.end(), ir::Sym(1));
  return grouped;
}

Flags pixels(const Expr& x) {
  Flags dims(x.sizes().size(), true);
  dims[0] = dims[1] = false;
  return dims;
}

Flags channels_of_groups(const ir::Dims& grouped) {
  Flags dims(grouped.size(), false);
  dims[2] = true;
  return dims;
}

// A value per image and group, or that and channel, as one per image and channel, in memory: lanes run along channels,
// over the borders of groups.
Expr per_image_and_channel(const Expr& x, const ir::Dims& grouped, const Expr& like) {
  const Value spread = x.graph()->expand(x.value(), without_pixels(grouped));
  ir::Dims sizes = like.sizes();
  std::fill(sizes.begin() + 2, sizes.end(), ir::Sym(1));
  return reshaped({x.graph(), x.graph()->map(Prim::Copy, {spread})}, std::move(sizes));
}

bool group_norm_channels_last(LowerCall& call, const ir::Dims& grouped) {
  const DType dtype = DType::float32;
  const Expr x = call.operand(0, dtype);
  const Flags image = pixels(x), channels = channels_of_groups(grouped);
  const Expr area = x.number(count(x, image)), width = x.number(grouped[2]);
  const Expr mean_of_channel = sum(x, image) / area, off = x - mean_of_channel;
  const Expr means = reshaped(mean_of_channel, without_pixels(grouped)),
             squares = reshaped(sum(off * off, image), without_pixels(grouped));
  const Expr mean = sum(means, channels) / width, apart = means - mean;
  const Expr variance = (sum(squares, channels) + sum(apart * apart, channels) * area) / (area * width);
  const Expr rstd = 1.0 / apply(Prim::Sqrt, variance + call.real(7));
  const Expr scale = call.none(1) ? rstd : rstd * per_channel(call.operand(1, dtype), grouped);
  Expr y = (x - per_image_and_channel(mean, grouped, x)) * per_image_and_channel(scale, grouped, x);
  if (!call.none(2)) y = y + along(call.operand(2, dtype), 1, x.rank());
  call.give(y);
  call.give(reshaped(mean, call.out(1).sizes));
  return call.give(reshaped(rstd, call.out(2).sizes));
}

bool group_norm_backward_channels_last(LowerCall& call, const ir::Dims& grouped) {
  const DType dtype = DType::float32;
  const Expr grad = call.operand(0, dtype), x = call.operand(1, dtype);
  const Flags image = pixels(x), channels = channels_of_groups(grouped);
  const Expr n = x.number(count(x, image) * grouped[2]);
  const Expr rstd = per_group(call.operand(3, dtype), grouped);
  const Expr off = x - per_image_and_channel(per_group(call.operand(2, dtype), grouped), grouped, x);
  const Expr totals = reshaped(sum(grad, image), without_pixels(grouped)),
             dots = reshaped(sum(grad * off, image), without_pixels(grouped));
  const Expr weight = call.none(4) ? x.number(1.0) : per_channel(call.operand(4, dtype), grouped);
  if (call.wants(0)) {
    const Expr a = sum(totals * weight, channels) / n, b = sum(dots * weight, channels) / n;
    auto spread = [&](const Expr& value) { return per_image_and_channel(value, grouped, x); };
    call.give(grad * spread(rstd * weight) - off * spread(rstd * rstd * rstd * b) - spread(rstd * a));
  } else {
    call.give_nothing();
  }
  Flags images(grouped.size(), false);
  images[0] = true;
  call.wants(1) ? call.give(reshaped(sum(dots * rstd, images), call.out(1).sizes)) : call.give_nothing();
  return call.wants(2) ? call.give(reshaped(sum(totals, images), call.out(2).sizes)) : call.give_nothing();
}

// --- groups in any layout
// ----------------------------------------------------------------------------------------------

// input, weight, bias, N, C, HxW, groups, eps. Results: output, mean, rstd.
bool group_norm(LowerCall& call) {
  const DType dtype = DType::float32;
  const auto grouped = grouped_sizes(call.type(0), call.sym(6));
  if (*compute_type(call.out().dtype) != dtype || !grouped) return false;
  const Expr x = reshaped(call.operand(0, dtype), *grouped);
  const Flags dims = within_groups(*grouped);
  const ir::Sym elements = count(x, dims);
  if (elements.same(0)) return false;
  if (has_channels_last(call.type(0))) return group_norm_channels_last(call, *grouped);
  const Expr n = x.number(elements);
  const Expr mean = sum(x, dims) / n, off = x - mean;
  const Expr rstd = 1.0 / apply(Prim::Sqrt, sum(off * off, dims) / n + call.real(7));
  Expr y = off * rstd;
  if (!call.none(1)) y = y * per_channel(call.operand(1, dtype), *grouped);
  if (!call.none(2)) y = y + per_channel(call.operand(2, dtype), *grouped);
  call.give(reshaped(y, call.out().sizes));
  call.give(reshaped(mean, call.out(1).sizes));
  return call.give(reshaped(rstd, call.out(2).sizes));
}

// grad_out, input, mean, rstd, weight, N, C, HxW, groups, output_mask.
bool group_norm_backward(LowerCall& call) {
  const DType dtype = DType::float32;
  const auto grouped = grouped_sizes(call.type(1), call.sym(8));
  if (*compute_type(call.type(1).dtype) != dtype || !grouped) return false;
  // Eager's kernel takes the gradient to lie as the input does, and autograd sees to that.
  if (!ops::same(call.type(0).strides, call.type(1).strides)) return false;
  const Expr grad = reshaped(call.operand(0, dtype), *grouped), x = reshaped(call.operand(1, dtype), *grouped);
  const Flags dims = within_groups(*grouped);
  const ir::Sym elements = count(x, dims);
  if (elements.same(0)) return false;
  if (has_channels_last(call.type(1))) return group_norm_backward_channels_last(call, *grouped);
  const Expr n = x.number(elements), rstd = per_group(call.operand(3, dtype), *grouped);
  const Expr xhat = (x - per_group(call.operand(2, dtype), *grouped)) * rstd;
  const Expr scaled = call.none(4) ? grad : grad * per_channel(call.operand(4, dtype), *grouped);
  const Expr a = sum(scaled, dims) / n, b = sum(scaled * xhat, dims) / n;
  Flags others(grouped->size(), true);
  others[1] = others[2] = false;
  call.wants(0) ? call.give(reshaped((scaled - a - xhat * b) * rstd, call.out().sizes)) : call.give_nothing();
  call.wants(1) ? call.give(reshaped(sum(grad * xhat, others), call.out(1).sizes)) : call.give_nothing();
  return call.wants(2) ? call.give(reshaped(sum(grad, others), call.out(2).sizes)) : call.give_nothing();
}

constexpr LowerRow kLowerNorms[] = {
    GL_LOWER("native_layer_norm", "default", layer_norm),
    GL_LOWER("native_layer_norm_backward", "default", layer_norm_backward),
    GL_LOWER("_fused_rms_norm", "default", rms_norm),
    GL_LOWER("_fused_rms_norm_backward", "default", rms_norm_backward),
    GL_LOWER("native_group_norm", "default", group_norm),
    GL_LOWER("native_group_norm_backward", "default", group_norm_backward),
    GL_LOWER("native_batch_norm", "default", native_batch_norm),
    GL_LOWER("_native_batch_norm_legit", "default", native_batch_norm),
    GL_LOWER("_native_batch_norm_legit", "no_stats", batch_norm_without_statistics),
    GL_LOWER("_native_batch_norm_legit_functional", "default", batch_norm_functional),
    GL_LOWER("native_batch_norm_backward", "default", batch_norm_backward),
};

}  // namespace

std::span<const LowerRow> lower_norms_rows() { return kLowerNorms; }

}  // namespace graphlift::codegen
