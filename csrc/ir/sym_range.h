// Owns: bounds of symbolic integers from bounds of their symbols. Only ir/ includes this.
// Must not: know guards.
#pragma once

#include <cstdint>
#include <span>

#include "ir/sym.h"

namespace graphlift::ir {

constexpr int64_t kNumberLimit = int64_t{1} << 62;

// Both ends included. The ends of int64_t stand for "no bound"; anything beyond kNumberLimit is one.
struct Range {
  static constexpr int64_t kNoLower = INT64_MIN, kNoUpper = INT64_MAX;
  int64_t lower = kNoLower, upper = kNoUpper;
};

struct SymbolBounds {
  std::span<const int64_t> lower, upper;  // by SymbolId
};

// Interval arithmetic.
Range range(const Sym& value, const SymbolBounds& bounds);

// A lower bound from writing each factor v as (lower bound + x) with x >= 0: when no coefficient of the expanded
// polynomial is negative, its constant is one. Decides s0*s1 - s0 > 0, where interval arithmetic can't. kNoLower: can't
// tell.
int64_t shifted_lower_bound(const Sym& value, const SymbolBounds& bounds);

}  // namespace graphlift::ir
