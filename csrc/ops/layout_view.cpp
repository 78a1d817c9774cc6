// Owns: broadcasting and the strides of views with other sizes. Must not: know operators.
#include <algorithm>

#include "ops/known.h"
#include "ops/layout.h"

namespace graphlift::ops {

using ir::Dims;
using ir::ShapeEnv;
using ir::Sym;
using ir::TensorType;

std::optional<Dims> broadcast(ShapeEnv& env, const Dims& a, const Dims& b) {
  const Dims& longer = a.size() >= b.size() ? a : b;
  const Dims& shorter = a.size() >= b.size() ? b : a;
  Dims result = longer;
  const size_t lead = longer.size() - shorter.size();
  for (size_t i = 0; i < shorter.size(); ++i) {
    Sym& mine = result[lead + i];
    const Sym& other = shorter[i];
    if (mine.same(other) || other.same(1)) continue;
    if (!mine.same(1) && equal(env, mine, other)) {
      if (other.is_constant()) mine = other;
      continue;
    }
    if (mine.same(1) || equal(env, mine, 1)) {
      mine = other;
      continue;
    }
    if (!equal(env, other, 1)) return std::nullopt;
  }
  return result;
}

std::optional<Dims> infer_sizes(ShapeEnv& env, const Dims& from, const Dims& to) {
  Dims sizes = to;
  std::optional<size_t> unknown;
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (!sizes[i].is_constant() || sizes[i].constant() >= 0) continue;
    if (sizes[i].constant() != -1 || unknown) return std::nullopt;
    unknown = i;
  }
  if (!unknown) {
    if (!equal(env, product(from), product(sizes))) return std::nullopt;
    return sizes;
  }
  // Sizes that stand on both sides cancel, so that the quotient stays an expression without a division where it can.
  Dims left = from, right;
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (i == *unknown) continue;
    auto match = std::find_if(left.begin(), left.end(), [&](const Sym& size) { return size.same(sizes[i]); });
    if (match != left.end() && !(sizes[i].is_constant() && sizes[i].constant() == 0)) {
      left.erase(match);
    } else {
      right.push_back(sizes[i]);
    }
  }
  const Sym elements = product(left), known = product(right);
  if (equal(env, known, 0)) return std::nullopt;
  const bool unit = known.is_constant() && known.constant() == 1;
  sizes[*unknown] = unit ? elements : floordiv(elements, known);
  if (!unit && !equal(env, mod(elements, known), 0)) return std::nullopt;
  return sizes;
}

namespace {

// The view of a tensor without elements: sizes alone decide.
Dims strides_of_empty(const Dims& sizes) {
  Dims strides(sizes.size(), 1);
  for (size_t i = sizes.size(); i-- > 1;) {
    const bool zero = sizes[i].is_constant() && sizes[i].constant() == 0;
    strides[i - 1] = zero ? strides[i] : strides[i] * sizes[i];
  }
  return strides;
}

// Whether the dim outside of `dim` begins another chunk of memory.
bool chunk_ends(ShapeEnv& env, const TensorType& type, size_t dim, const Sym& expected) {
  const Sym &size = type.sizes[dim - 1], &stride = type.strides[dim - 1];
  return !known_equal(env, stride, expected) && !equal(env, size, 1) && !equal(env, stride, expected);
}

// While a chunk is not covered, or the next dim is 1 long. One that fits is either of the two.
bool takes_another(ShapeEnv& env, const Sym& covered, const Sym& chunk, const Sym& next) {
  return known_at_most(env, covered * next, chunk) || less(env, covered, chunk) || equal(env, next, 1);
}

}  // namespace

// Old dims are taken in chunks that lie in memory as one dim; each chunk must be covered by new dims exactly.
std::optional<Dims> view_strides(ShapeEnv& env, const TensorType& type, const Dims& sizes) {
  if (type.sizes.empty()) return Dims(sizes.size(), 1);
  if (is_empty(env, type.sizes)) return equal(env, type.sizes, sizes) ? type.strides : strides_of_empty(sizes);
  if (same(type.strides, contiguous(type.sizes))) return contiguous(sizes);
  Dims strides(sizes.size());
  size_t left = sizes.size();  // new dims that have no stride yet
  Sym base = type.strides.back(), old_elements = 1, new_elements = 1;
  for (size_t dim = type.sizes.size(); dim-- > 0;) {
    old_elements = old_elements * type.sizes[dim];
    if (dim > 0 && !chunk_ends(env, type, dim, old_elements * base)) continue;
    while (left > 0 && takes_another(env, new_elements, old_elements, sizes[left - 1])) {
      --left;
      strides[left] = new_elements * base;
      new_elements = new_elements * sizes[left];
    }
    if (!equal(env, new_elements, old_elements)) return std::nullopt;
    if (dim == 0) break;
    base = type.strides[dim - 1];
    old_elements = 1;
    new_elements = 1;
  }
  if (left != 0) return std::nullopt;
  return strides;
}

}  // namespace graphlift::ops
