// Owns: contiguity and formats of existing tensors, strides of fresh ones. Views are in layout_view.cpp.
// Must not: know operators.
#include "ops/layout.h"

#include <algorithm>
#include <numeric>

#include "ops/known.h"

namespace graphlift::ops {

using ir::Dims;
using ir::Relation;
using ir::ShapeEnv;
using ir::Sym;
using ir::TensorType;

bool equal(ShapeEnv& env, const Sym& a, const Sym& b) {
  if (a.is_constant() && b.is_constant()) return a.constant() == b.constant();
  return a.same(b) || env.guard(Relation::Eq, a, b);
}

bool less(ShapeEnv& env, const Sym& a, const Sym& b) {
  if (a.is_constant() && b.is_constant()) return a.constant() < b.constant();
  return !a.same(b) && env.guard(Relation::Lt, a, b);
}

bool at_most(ShapeEnv& env, const Sym& a, const Sym& b) {
  if (a.is_constant() && b.is_constant()) return a.constant() <= b.constant();
  return a.same(b) || env.guard(Relation::Le, a, b);
}

bool equal(ShapeEnv& env, const Dims& a, const Dims& b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i)
    if (!equal(env, a[i], b[i])) return false;
  return true;
}

bool same(const Dims& a, const Dims& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const Sym& x, const Sym& y) { return x.same(y); });
}

std::optional<int> wrap_dim(int64_t dim, int rank) {
  const int range = std::max(rank, 1);
  if (dim < -range || dim >= range) return std::nullopt;
  return static_cast<int>(dim < 0 ? dim + range : dim);
}

std::optional<std::vector<bool>> dim_mask(const std::vector<int64_t>& dims, int rank, bool empty_means_all) {
  std::vector<bool> mask(static_cast<size_t>(std::max(rank, 1)), dims.empty() && empty_means_all);
  for (int64_t named : dims) {
    auto dim = wrap_dim(named, rank);
    if (!dim || mask[*dim]) return std::nullopt;
    mask[*dim] = true;
  }
  mask.resize(static_cast<size_t>(rank));
  return mask;
}

Sym product(std::span<const Sym> sizes) {
  Sym result = 1;
  for (const Sym& size : sizes) result = result * size;
  return result;
}

bool is_empty(ShapeEnv& env, const Dims& sizes) {
  return std::any_of(sizes.begin(), sizes.end(), [&](const Sym& size) { return equal(env, size, 0); });
}

namespace {

bool is_zero(const Sym& size) { return size.is_constant() && size.constant() == 0; }

// Strides when the dims are nested in this order, innermost first.
Dims nested(const Dims& sizes, std::span<const int> order, bool zero_counts_as_one) {
  Dims strides(sizes.size());
  Sym next = 1;
  for (int dim : order) {
    strides[dim] = next;
    if (!(zero_counts_as_one && is_zero(sizes[dim]))) next = next * sizes[dim];
  }
  return strides;
}

constexpr int kChannelsLast[] = {1, 3, 2, 0};
constexpr int kChannelsLast3d[] = {1, 4, 3, 2, 0};

std::span<const int> channels_last_order(Format format) {
  if (format == Format::ChannelsLast3d) return kChannelsLast3d;
  return kChannelsLast;
}

// Whether the strides alone say channels last. Ambiguous ones (sizes of 1) count as contiguous, as in eager.
bool looks_channels_last(ShapeEnv& env, const TensorType& type, Format format) {
  if (equal(env, type.strides[1], 0)) return false;
  Sym least = 0;
  for (int dim : channels_last_order(format)) {
    if (equal(env, type.sizes[dim], 0) || less(env, type.strides[dim], least)) return false;
    if (dim == 0 && equal(env, least, type.strides[1])) return false;
    least = type.strides[dim] * type.sizes[dim];
  }
  return true;
}

// A dim that may be 1 long and lies where it should needs no decision: it is passed over, or multiplies by one.
bool nests_exactly(ShapeEnv& env, const TensorType& type, std::span<const int> order) {
  Sym expected = 1;
  for (int dim : order) {
    const bool in_place = known_equal(env, type.strides[dim], expected);
    if (!in_place && equal(env, type.sizes[dim], 1)) continue;
    if (!in_place && !equal(env, type.strides[dim], expected)) return false;
    expected = expected * type.sizes[dim];
  }
  return true;
}

// Dense, as far as nobody has to be asked: whatever the sizes that vary are, dims lie without gaps in one order.
bool nests_for_sure(const ShapeEnv& env, const TensorType& type) {
  std::vector<int> order;
  for (int dim = type.rank(); dim-- > 0;) {
    size_t at = order.size();
    while (at > 0 && !known_at_most(env, type.strides[order[at - 1]], type.strides[dim])) --at;
    order.insert(order.begin() + static_cast<std::ptrdiff_t>(at), dim);
  }
  Sym expected = 1;
  for (int dim : order) {
    if (!known_equal(env, type.strides[dim], expected)) return false;
    expected = expected * type.sizes[dim];
  }
  return true;
}

// Elements that lie on each other for sure; where there are none, none do.
bool overlaps(ShapeEnv& env, const TensorType& type) {
  if (std::any_of(type.sizes.begin(), type.sizes.end(), [](const Sym& size) { return size.same(0); })) return false;
  for (size_t i = 0; i < type.sizes.size(); ++i)
    if (type.strides[i].same(0) && known_less(env, 1, type.sizes[i])) return true;
  return false;
}

// Innermost first. Where strides of dims that may be 1 long may be equal, either order is right: see is_dense.
void sort_by_stride(ShapeEnv& env, const TensorType& type, std::vector<int>* order) {
  auto precedes = [&](const Sym& a, const Sym& b) {
    if (known_at_most(env, b, a)) return false;
    return known_at_most(env, a, b) || less(env, a, b);
  };
  for (size_t i = 1; i < order->size(); ++i)
    for (size_t at = i; at > 0 && precedes(type.strides[(*order)[at]], type.strides[(*order)[at - 1]]); --at)
      std::swap((*order)[at], (*order)[at - 1]);
}

}  // namespace

Dims contiguous(const Dims& sizes) {
  std::vector<int> order(sizes.size());
  std::iota(order.rbegin(), order.rend(), 0);
  return nested(sizes, order, true);
}

Dims strides_for(const Dims& sizes, Format format) {
  if (format == Format::Contiguous) return contiguous(sizes);
  return nested(sizes, channels_last_order(format), false);
}

bool is_contiguous(ShapeEnv& env, const TensorType& type) {
  if (same(type.strides, contiguous(type.sizes)) || is_empty(env, type.sizes)) return true;
  std::vector<int> order(type.sizes.size());
  std::iota(order.rbegin(), order.rend(), 0);
  return nests_exactly(env, type, order);
}

bool is_contiguous(ShapeEnv& env, const TensorType& type, Format format) {
  if (format == Format::Contiguous) return is_contiguous(env, type);
  if (type.rank() != (format == Format::ChannelsLast ? 4 : 5)) return false;
  return nests_exactly(env, type, channels_last_order(format));
}

// As eager, which leaves dims of size 1 out: they change nothing where they nest, and are decided where they do not.
bool is_dense(ShapeEnv& env, const TensorType& type) {
  if (overlaps(env, type)) return false;
  if (nests_for_sure(env, type) || is_contiguous(env, type)) return true;
  std::vector<int> order;
  for (int dim = type.rank(); dim-- > 0;)
    if (!known_less(env, type.sizes[dim], 2)) order.push_back(dim);
  sort_by_stride(env, type, &order);
  return nests_exactly(env, type, order);
}

Format suggest_format(ShapeEnv& env, const TensorType& type) {
  if (type.rank() != 4 && type.rank() != 5) return Format::Contiguous;
  const Format format = type.rank() == 4 ? Format::ChannelsLast : Format::ChannelsLast3d;
  return looks_channels_last(env, type, format) ? format : Format::Contiguous;
}

std::vector<int> iteration_order(ShapeEnv& env, const Dims& sizes, const std::vector<Dims>& strides) {
  std::vector<int> order(sizes.size());
  std::iota(order.rbegin(), order.rend(), 0);
  // Positive: dim a comes after dim b. Zero: no operand tells.
  auto compare = [&](int a, int b) {
    for (const Dims& operand : strides) {
      if (equal(env, operand[a], 0) || equal(env, operand[b], 0)) continue;
      if (less(env, operand[a], operand[b])) return -1;
      if (less(env, operand[b], operand[a])) return 1;
      if (less(env, sizes[b], sizes[a])) return 1;
    }
    return 0;
  };
  for (int i = 1; i < static_cast<int>(order.size()); ++i) {
    int moving = i;
    for (int other = i - 1; other >= 0; --other) {
      const int comparison = compare(order[other], order[moving]);
      if (comparison < 0) break;
      if (comparison == 0) continue;
      std::swap(order[other], order[moving]);
      moving = other;
    }
  }
  return order;
}

Dims preserved_strides(ShapeEnv& env, const TensorType& type) {
  if (type.rank() == 0) return {};
  if (is_dense(env, type)) return type.strides;
  if (type.rank() == 1) return {1};
  std::vector<int> order = iteration_order(env, type.sizes, {type.strides});
  return nested(type.sizes, order, true);
}

}  // namespace graphlift::ops
