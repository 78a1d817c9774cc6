// Owns: rows of reductions. Results are contiguous. Must not: hold scans or sorts.
#include "ops/family.h"
#include "ops/promote.h"
#include "ops/results.h"

namespace graphlift::ops {
namespace {

using ir::Dims;
using ir::DType;
using ir::TensorType;

constexpr size_t kAbsent = ~size_t{0};

Dims reduced_sizes(const TensorType& self, const std::vector<bool>& mask, bool keep) {
  Dims sizes;
  for (int dim = 0; dim < self.rank(); ++dim) {
    if (!mask[dim]) sizes.push_back(self.sizes[dim]);
    if (mask[dim] && keep) sizes.push_back(1);
  }
  return sizes;
}

// Which arguments say what.
struct Where {
  size_t dims = kAbsent, keep = kAbsent, dtype = kAbsent;
};

constexpr Where kAll{}, kDims{1, 2}, kDimsDType{1, 2, 3}, kOnlyDType{kAbsent, kAbsent, 1};

// Sizes after reducing over the named dims, all when none are named.
std::optional<Dims> reduce(ShapeCall& call, Where where) {
  const TensorType& self = call.tensor(0);
  auto mask = dim_mask(where.dims == kAbsent ? std::vector<int64_t>{} : call.integers(where.dims), self.rank());
  if (!mask) return std::nullopt;
  return reduced_sizes(self, *mask, where.keep != kAbsent && call.boolean(where.keep));
}

enum class Kind { Sum, Mean, Extreme, Truth, Spread, Norm, LogSum, Count };

std::optional<DType> reduced_dtype(ShapeCall& call, Kind kind, size_t dtype_argument) {
  const DType own = call.tensor(0).dtype;
  const auto asked = dtype_argument == kAbsent ? std::nullopt : call.dtype(dtype_argument);
  const bool inexact = ir::is_floating(asked.value_or(own)) || ir::is_complex(asked.value_or(own));
  switch (kind) {
    case Kind::Sum:
      return asked ? asked : inexact ? own : DType::int64;
    case Kind::Mean:
      return inexact ? std::optional(asked.value_or(own)) : std::nullopt;
    case Kind::Extreme:
      return ir::is_complex(own) ? std::nullopt : std::optional(own);
    case Kind::Truth:
      return own == DType::uint8 ? DType::uint8 : DType::bool_;
    case Kind::Spread:
      return inexact ? std::optional(real_of(own)) : std::nullopt;
    case Kind::Norm:
      return inexact ? std::optional(real_of(asked.value_or(own))) : std::nullopt;
    case Kind::LogSum:
      return inexact ? own : call.default_dtype;
    case Kind::Count:
      return DType::int64;
  }
  return std::nullopt;
}

// No list of dims reduces over all, an empty one over none.
bool truth_over_dims(ShapeCall& call) {
  const TensorType& self = call.tensor(0);
  auto mask = dim_mask(call.integers(1), self.rank(), call.none(1));
  if (!mask) return false;
  const DType dtype = *reduced_dtype(call, Kind::Truth, kAbsent);
  return give_contiguous(call, dtype, self.device, reduced_sizes(self, *mask, call.boolean(2)));
}

template <Kind K, Where W>
bool reduction(ShapeCall& call) {
  auto sizes = reduce(call, W);
  auto dtype = reduced_dtype(call, K, W.dtype);
  return sizes && dtype && give_contiguous(call, *dtype, call.tensor(0).device, std::move(*sizes));
}

// The largest of nothing is an error.
bool reduces_something(ShapeCall& call, const Where& where) {
  const TensorType& self = call.tensor(0);
  auto mask = dim_mask(
      where.dims == kAbsent || call.none(where.dims) ? std::vector<int64_t>{} : call.integers(where.dims), self.rank());
  if (!mask) return false;
  for (int dim = 0; dim < self.rank(); ++dim)
    if ((*mask)[dim] && equal(call.env, self.sizes[dim], 0)) return false;
  return true;
}

template <Where W>
bool extreme(ShapeCall& call) {
  return reduces_something(call, W) && reduction<Kind::Extreme, W>(call);
}

// Values and where they are.
template <Where W>
bool extreme_with_index(ShapeCall& call) {
  if (!extreme<W>(call)) return false;
  return give_contiguous(call, DType::int64, call.tensor(0).device, call.results[0]->sizes);
}

// self, dim?, keepdim. Without a dim, keepdim keeps all.
bool arg_extreme(ShapeCall& call) {
  if (ir::is_complex(call.tensor(0).dtype) || call.tensor(0).dtype == DType::bool_) return false;
  return reduces_something(call, {1, 2}) && reduction<Kind::Count, Where{1, 2}>(call);
}

// Where nothing is named, CUDA keeps no dim.
template <Where W>
bool pair_of_extremes(ShapeCall& call) {
  if (!call.tensor(0).device.is_cpu() && call.none(W.dims) && call.boolean(W.keep)) return false;
  if (!extreme<W>(call)) return false;
  return give(call, *call.results[0]);
}

template <Where W>
bool spread_and_mean(ShapeCall& call) {
  if (!reduction<Kind::Spread, W>(call)) return false;
  return give_contiguous(call, call.tensor(0), call.results[0]->sizes);
}

// No dims are all of them; without keepdim torch's own kernel then fails.
bool log_sum(ShapeCall& call) {
  if (call.tensor(0).rank() > 0 && call.syms(1).empty() && !call.boolean(2)) return false;
  return reduction<Kind::LogSum, kDims>(call);
}

bool trace(ShapeCall& call) { return call.tensor(0).rank() == 2 && reduction<Kind::Sum, Where{}>(call); }

constexpr OpRow kReductions[] = {
    GL_OP("sum", "default", reduction<Kind::Sum, kOnlyDType>),
    GL_OP("sum", "dim_IntList", reduction<Kind::Sum, kDimsDType>),
    GL_OP("nansum", "default", reduction<Kind::Sum, kDimsDType>),
    GL_OP("prod", "default", reduction<Kind::Sum, kOnlyDType>),
    GL_OP("prod", "dim_int", reduction<Kind::Sum, kDimsDType>),
    GL_OP("mean", "default", reduction<Kind::Mean, kOnlyDType>),
    GL_OP("mean", "dim", reduction<Kind::Mean, kDimsDType>),
    GL_OP("amax", "default", extreme<kDims>),
    GL_OP("amin", "default", extreme<kDims>),
    GL_OP("max", "default", extreme<kAll>),
    GL_OP("min", "default", extreme<kAll>),
    GL_OP("max", "dim", extreme_with_index<kDims>),
    GL_OP("min", "dim", extreme_with_index<kDims>),
    GL_OP("aminmax", "default", pair_of_extremes<kDims>),
    GL_OP("argmax", "default", arg_extreme),
    GL_OP("argmin", "default", arg_extreme),
    GL_OP("all", "default", reduction<Kind::Truth, kAll>),
    GL_OP("all", "dim", reduction<Kind::Truth, kDims>),
    GL_OP("all", "dims", truth_over_dims),
    GL_OP("any", "default", reduction<Kind::Truth, kAll>),
    GL_OP("any", "dim", reduction<Kind::Truth, kDims>),
    GL_OP("any", "dims", truth_over_dims),
    GL_OP("var", "correction", reduction<Kind::Spread, Where{1, 3}>),
    GL_OP("std", "correction", reduction<Kind::Spread, Where{1, 3}>),
    GL_OP("var_mean", "correction", spread_and_mean<Where{1, 3}>),
    GL_OP("std_mean", "correction", spread_and_mean<Where{1, 3}>),
    GL_OP("linalg_vector_norm", "default", reduction<Kind::Norm, Where{2, 3, 4}>),
    GL_OP("norm", "Scalar", reduction<Kind::Norm, kAll>),
    GL_OP("norm", "ScalarOpt_dim", reduction<Kind::Norm, Where{2, 3}>),
    GL_OP("norm", "ScalarOpt_dim_dtype", reduction<Kind::Norm, Where{2, 3, 4}>),
    GL_OP("norm", "ScalarOpt_dtype", reduction<Kind::Norm, Where{kAbsent, kAbsent, 2}>),
    GL_OP("logsumexp", "default", log_sum),
    GL_OP("count_nonzero", "default", reduction<Kind::Count, Where{1}>),
    GL_OP("count_nonzero", "dim_IntList", reduction<Kind::Count, Where{1}>),
    GL_OP("trace", "default", trace),
};

}  // namespace

std::span<const OpRow> reductions_rows() { return kReductions; }

}  // namespace graphlift::ops
