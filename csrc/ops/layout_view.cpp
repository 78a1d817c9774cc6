// Owns: broadcasting and the strides of views with other sizes. Must not: know operators.
#include <algorithm>

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
    if (mine.same(other) || equal(env, other, 1)) continue;
    if (equal(env, mine, 1)) {
      mine = other;
      continue;
    }
    if (!equal(env, mine, other)) return std::nullopt;
    if (other.is_constant()) mine = other;
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
    const bool chunk_ends =
        dim == 0 || (!equal(env, type.sizes[dim - 1], 1) && !equal(env, type.strides[dim - 1], old_elements * base));
    if (!chunk_ends) continue;
    while (left > 0 && (less(env, new_elements, old_elements) || equal(env, sizes[left - 1], 1))) {
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
