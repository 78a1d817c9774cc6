// Owns: interval arithmetic on symbolic integers.
// Must not: overflow: it computes in 128 bits and gives up beyond 2^62.
#include "ir/sym_range.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "ir/sym_expr.h"

namespace graphlift::ir {
namespace {

using Wide = __int128;
int64_t clamp(Wide value) {
  if (value >= kNumberLimit) return Range::kNoUpper;
  if (value <= -kNumberLimit) return Range::kNoLower;
  return static_cast<int64_t>(value);
}

bool finite(int64_t bound) { return bound != Range::kNoLower && bound != Range::kNoUpper; }

// Zero times no bound is zero: the factor itself is always finite.
int64_t times(int64_t a, int64_t b) {
  if (a == 0 || b == 0) return 0;
  if (finite(a) && finite(b)) return clamp(static_cast<Wide>(a) * b);
  return (a < 0) == (b < 0) ? Range::kNoUpper : Range::kNoLower;
}

int64_t plus(int64_t a, int64_t b) {
  if (!finite(a)) return a;
  if (!finite(b)) return b;
  return clamp(static_cast<Wide>(a) + b);
}

Range product(const Range& a, const Range& b) {
  auto [lower, upper] =
      std::minmax({times(a.lower, b.lower), times(a.lower, b.upper), times(a.upper, b.lower), times(a.upper, b.upper)});
  return {lower, upper};
}

Range sum(const Range& a, const Range& b) { return {plus(a.lower, b.lower), plus(a.upper, b.upper)}; }

int64_t quotient(int64_t a, int64_t b) {  // b > 0
  if (!finite(a)) return a;
  if (!finite(b)) return a < 0 ? -1 : 0;
  return floor_divide(a, b);
}

Range floordiv_range(const Range& a, const Range& b) {
  if (b.lower <= 0) return {};
  auto [lower, upper] = std::minmax(
      {quotient(a.lower, b.lower), quotient(a.lower, b.upper), quotient(a.upper, b.lower), quotient(a.upper, b.upper)});
  return {lower, upper};
}

Range mod_range(const Range& a, const Range& b) {
  if (b.lower <= 0) return {};
  if (a.lower >= 0 && a.upper < b.lower) return a;
  int64_t most = finite(b.upper) ? b.upper - 1 : Range::kNoUpper;
  // With a >= 0 the rest is no more than a.
  return {0, a.lower >= 0 ? std::min(most, a.upper) : most};
}

Range factor_range(const Factor& factor, const SymbolBounds& bounds) {
  if (!factor.atom) {
    size_t id = static_cast<size_t>(factor.symbol);
    return id < bounds.lower.size() ? Range{bounds.lower[id], bounds.upper[id]} : Range{};
  }
  Range a = range(factor.atom->left, bounds), b = range(factor.atom->right, bounds);
  switch (factor.atom->kind) {
    case AtomKind::FloorDiv:
      return floordiv_range(a, b);
    case AtomKind::Mod:
      return mod_range(a, b);
    case AtomKind::Min:
      return {std::min(a.lower, b.lower), std::min(a.upper, b.upper)};
    case AtomKind::Max:
      return {std::max(a.lower, b.lower), std::max(a.upper, b.upper)};
  }
  return {};
}

struct Shifted {
  std::vector<const Factor*> product;
  Wide coefficient;
};

bool same_product(const std::vector<const Factor*>& a, const std::vector<const Factor*>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const Factor* x, const Factor* y) { return compare(*x, *y) == 0; });
}

}  // namespace

Range range(const Sym& value, const SymbolBounds& bounds) {
  Range result{constant_part(value), constant_part(value)};
  for (const Term& term : terms_of(value)) {
    Range part{term.coefficient, term.coefficient};
    for (const Factor& factor : term.factors) part = product(part, factor_range(factor, bounds));
    result = sum(result, part);
  }
  return result;
}

int64_t shifted_lower_bound(const Sym& value, const SymbolBounds& bounds) {
  constexpr size_t kDegree = 5, kTerms = 12;
  constexpr Wide kMost = Wide{1} << 62;
  auto terms = terms_of(value);
  // Without products it says no more than interval arithmetic. The product of highest degree stands first.
  if (terms.empty() || terms.size() > kTerms || terms[0].factors.size() < 2) return Range::kNoLower;
  Wide constant = constant_part(value);
  std::vector<Shifted> sums;
  for (const Term& term : terms) {
    size_t degree = term.factors.size();
    if (degree > kDegree) return Range::kNoLower;
    int64_t lowers[kDegree];
    for (size_t i = 0; i < degree; ++i) {
      lowers[i] = factor_range(term.factors[i], bounds).lower;
      if (lowers[i] == Range::kNoLower) return Range::kNoLower;
    }
    for (size_t subset = 0; subset < (size_t{1} << degree); ++subset) {
      Shifted part{{}, term.coefficient};
      for (size_t i = 0; i < degree; ++i) {
        if (subset >> i & 1) {
          part.product.push_back(&term.factors[i]);
        } else {
          part.coefficient *= lowers[i];
          if (part.coefficient > kMost || part.coefficient < -kMost) return Range::kNoLower;
        }
      }
      if (part.coefficient == 0) continue;
      auto found = std::find_if(sums.begin(), sums.end(),
                                [&](const Shifted& other) { return same_product(other.product, part.product); });
      if (part.product.empty()) {
        constant += part.coefficient;
      } else if (found != sums.end()) {
        found->coefficient += part.coefficient;
      } else {
        sums.push_back(std::move(part));
      }
    }
  }
  for (const Shifted& part : sums)
    if (part.coefficient < 0) return Range::kNoLower;
  return std::min(clamp(constant), kNumberLimit - 1);
}

}  // namespace graphlift::ir
