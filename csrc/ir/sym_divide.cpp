// Owns: floordiv, mod, min and max of symbolic integers, with Python's signs.
// Must not: assume anything of the symbols' values (ShapeEnv knows bounds); a divisor is not zero where the result is
// used.
#include <algorithm>
#include <iterator>
#include <numeric>

#include "base/error.h"
#include "ir/sym.h"
#include "ir/sym_expr.h"

namespace graphlift::ir {
namespace {

// a == quotient * b + rest, for all values.
struct Division {
  Sym quotient, rest;
};

bool is_zero(const Sym& value) { return value.is_constant() && value.constant() == 0; }

bool leads_negative(const Sym& value) {
  return value.is_constant() ? value.constant() < 0 : value.expr()->terms[0].coefficient < 0;
}

// `whole` without the factors of `part`; none when they are not all in it.
std::optional<std::vector<Factor>> without(const std::vector<Factor>& whole, const std::vector<Factor>& part) {
  if (part.size() > whole.size()) return std::nullopt;
  std::vector<Factor> rest;
  size_t taken = 0;
  for (const Factor& factor : whole) {
    if (taken < part.size() && compare(factor, part[taken]) == 0) {
      ++taken;
    } else {
      rest.push_back(factor);
    }
  }
  if (taken != part.size()) return std::nullopt;
  return rest;
}

Division divide_by_constant(const Sym& a, int64_t b) {
  std::vector<Term> quotient, rest;
  for (const Term& term : terms_of(a)) {
    if (term.coefficient / b != 0) quotient.push_back({term.coefficient / b, term.factors});
    if (term.coefficient % b != 0) rest.push_back({term.coefficient % b, term.factors});
  }
  int64_t constant = constant_part(a);
  return {SymBuilder::canonical(std::move(quotient), floor_divide(constant, b)),
          SymBuilder::canonical(std::move(rest), floor_modulo(constant, b))};
}

// Polynomial long division by the leading term. Each step removes a multiple of it, so the rest falls in the monomial
// order.
Division divide(const Sym& a, const Sym& b) {
  if (b.is_constant()) return divide_by_constant(a, b.constant());
  constexpr int kSteps = 64;
  const Term& lead = b.expr()->terms[0];
  Division result{Sym(0), a};
  for (int step = 0; step < kSteps; ++step) {
    std::optional<Sym> part;
    for (const Term& term : terms_of(result.rest)) {
      int64_t scale = term.coefficient / lead.coefficient;
      if (scale == 0) continue;
      if (auto factors = without(term.factors, lead.factors)) {
        part = SymBuilder::term(scale, *factors);
        break;
      }
    }
    if (!part) return result;
    result.rest = result.rest - *part * b;
    result.quotient = result.quotient + *part;
  }
  return {Sym(0), a};
}

int64_t content(const Sym& value) {
  int64_t gcd = constant_part(value);
  for (const Term& term : terms_of(value)) gcd = std::gcd(gcd, term.coefficient);
  return gcd < 0 ? -gcd : gcd;
}

std::vector<Factor> common(const std::vector<Factor>& a, const std::vector<Factor>& b) {
  std::vector<Factor> factors;
  std::set_intersection(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(factors),
                        [](const Factor& x, const Factor& y) { return compare(x, y) < 0; });
  return factors;
}

std::vector<Factor> common_factors(const Sym& a, const Sym& b) {
  if (constant_part(a) != 0 || constant_part(b) != 0 || a.is_constant() || b.is_constant()) return {};
  std::vector<Factor> factors = a.expr()->terms[0].factors;
  for (const Sym* side : {&a, &b})
    for (const Term& term : terms_of(*side)) factors = common(factors, term.factors);
  return factors;
}

// The greatest product that plainly divides both, positive; 1 when there is none.
Sym common_divisor(const Sym& a, const Sym& b) {
  return SymBuilder::term(std::gcd(content(a), content(b)), common_factors(a, b));
}

Sym exact_quotient(const Sym& value, const Sym& divisor) {
  int64_t scale = constant_part(divisor);
  const std::vector<Factor> none, *factors = &none;
  if (!divisor.is_constant()) {
    scale = divisor.expr()->terms[0].coefficient;
    factors = &divisor.expr()->terms[0].factors;
  }
  Sym result(constant_part(value) / scale);
  for (const Term& term : terms_of(value))
    result = result + SymBuilder::term(term.coefficient / scale, *without(term.factors, *factors));
  return result;
}

// The gcd of the divisor and of all coefficients but the constant one.
int64_t inner_gcd(const Sym& rest, int64_t divisor) {
  int64_t gcd = divisor;
  for (const Term& term : terms_of(rest)) gcd = std::gcd(gcd, term.coefficient);
  return gcd;
}

Sym without_constant(const Sym& value) { return value - Sym(constant_part(value)); }

const SymAtom* lone_atom(const Sym& value) {
  auto terms = terms_of(value);
  if (terms.size() != 1 || terms[0].coefficient != 1 || terms[0].factors.size() != 1) return nullptr;
  return terms[0].factors[0].atom.get();
}

// floor(rest / b), where divide() found nothing to take out and nothing divides both.
Sym divide_reduced(const Sym& rest, const Sym& b) {
  const SymAtom* atom = lone_atom(rest);
  if (atom && atom->kind == AtomKind::Mod && constant_part(rest) == 0 && atom->right.same(b)) return Sym(0);
  if (!b.is_constant()) return SymBuilder::atom(AtomKind::FloorDiv, rest, b);
  int64_t divisor = b.constant();
  if (rest.is_constant()) return Sym(floor_divide(rest.constant(), divisor));
  // (g*p + c) // (g*d) == (p + c//g) // d
  if (int64_t gcd = inner_gcd(rest, divisor); gcd > 1) {
    Sym inner = exact_quotient(without_constant(rest), Sym(gcd)) + Sym(floor_divide(constant_part(rest), gcd));
    return floordiv(inner, Sym(divisor / gcd));
  }
  // (-x) // d == -((x + d - 1) // d): one form for both ways to write a rounded up quotient.
  if (leads_negative(rest)) return -floordiv(Sym(divisor - 1) - rest, b);
  // (x//y + c) // d == (x + c*y) // (y*d), as d > 0
  if (atom && atom->kind == AtomKind::FloorDiv)
    return floordiv(atom->left + atom->right * Sym(constant_part(rest)), atom->right * b);
  return SymBuilder::atom(AtomKind::FloorDiv, rest, b);
}

// Takes x for each x % y where b divides y: the same modulo b.
Sym without_inner_mods(const Sym& value, const Sym& b) {
  Sym result(constant_part(value));
  bool changed = false;
  for (const Term& term : terms_of(value)) {
    Sym product(term.coefficient);
    for (const Factor& factor : term.factors) {
      bool inner = factor.atom && factor.atom->kind == AtomKind::Mod && is_zero(divide(factor.atom->right, b).rest);
      changed |= inner;
      product = product * (inner ? factor.atom->left : SymBuilder::term(1, {factor}));
    }
    result = result + product;
  }
  return changed ? result : value;
}

// rest % b for a constant b > 0: coefficients and the constant come into [0, b).
Sym mod_reduced_constant(const Sym& rest, int64_t divisor) {
  Sym positive(floor_modulo(constant_part(rest), divisor));
  for (const Term& term : terms_of(rest))
    positive = positive + SymBuilder::term(floor_modulo(term.coefficient, divisor), term.factors);
  if (positive.is_constant()) return positive;
  // (g*p + c) % (g*d) == g*((p + c//g) % d) + c%g
  if (int64_t gcd = inner_gcd(positive, divisor); gcd > 1) {
    int64_t constant = constant_part(positive);
    Sym inner = exact_quotient(without_constant(positive), Sym(gcd)) + Sym(constant / gcd);
    return Sym(gcd) * mod(inner, Sym(divisor / gcd)) + Sym(constant % gcd);
  }
  return SymBuilder::atom(AtomKind::Mod, positive, Sym(divisor));
}

void flatten(AtomKind kind, const Sym& value, std::vector<Sym>* operands) {
  const SymAtom* atom = constant_part(value) == 0 ? lone_atom(value) : nullptr;
  if (!atom || atom->kind != kind) {
    operands->push_back(value);
    return;
  }
  flatten(kind, atom->left, operands);
  flatten(kind, atom->right, operands);
}

// Apart from the constant.
bool same_terms(const Sym& a, const Sym& b) {
  auto left = terms_of(a), right = terms_of(b);
  return std::equal(left.begin(), left.end(), right.begin(), right.end(), [](const Term& x, const Term& y) {
    return x.coefficient == y.coefficient && compare_products(x.factors, y.factors) == 0;
  });
}

// min or max: nested ones are flattened, operands that another one beats for all values are dropped, the rest is
// sorted.
Sym extremum(AtomKind kind, const Sym& a, const Sym& b) {
  // The far end of 64 bits stands for "no bound", as in a slice without an end.
  int64_t no_bound = kind == AtomKind::Min ? INT64_MAX : INT64_MIN;
  if (b.is_constant() && b.constant() == no_bound) return a;
  if (a.is_constant() && a.constant() == no_bound) return b;
  std::vector<Sym> operands, kept;
  flatten(kind, a, &operands);
  flatten(kind, b, &operands);
  for (const Sym& operand : operands) {
    bool beaten = false;
    for (Sym& other : kept) {
      if (!same_terms(operand, other)) continue;
      beaten = true;
      if ((constant_part(operand) < constant_part(other)) == (kind == AtomKind::Min)) other = operand;
      break;
    }
    if (!beaten) kept.push_back(operand);
  }
  std::sort(kept.begin(), kept.end(), [](const Sym& x, const Sym& y) { return compare(x, y) < 0; });
  Sym result = kept[0];
  for (size_t i = 1; i < kept.size(); ++i) result = SymBuilder::atom(kind, result, kept[i]);
  return result;
}

}  // namespace

Sym floordiv(const Sym& a, const Sym& b) {
  if (a.is_constant() && b.is_constant()) return Sym(floor_divide(a.constant(), b.constant()));
  GL_CHECK(!is_zero(b), "a symbolic integer was divided by zero");
  if (b.is_constant() && b.constant() == 1) return a;
  if (leads_negative(b)) return floordiv(-a, -b);
  auto [quotient, rest] = divide(a, b);
  if (is_zero(rest)) return quotient;
  if (!b.is_constant()) {
    Sym divisor = common_divisor(rest, b);
    if (!divisor.is_constant() || divisor.constant() != 1)
      return quotient + floordiv(exact_quotient(rest, divisor), exact_quotient(b, divisor));
  }
  return quotient + divide_reduced(rest, b);
}

Sym mod(const Sym& a, const Sym& b) {
  if (a.is_constant() && b.is_constant()) return Sym(floor_modulo(a.constant(), b.constant()));
  GL_CHECK(!is_zero(b), "a symbolic integer was divided by zero");
  if (leads_negative(b)) return -mod(-a, -b);
  Sym rest = divide(a, b).rest;
  if (Sym plain = without_inner_mods(rest, b); plain.expr() != rest.expr()) return mod(plain, b);
  if (b.is_constant()) return mod_reduced_constant(rest, b.constant());
  if (is_zero(rest)) return Sym(0);
  Sym divisor = common_divisor(rest, b);
  if (divisor.is_constant() && divisor.constant() == 1) return SymBuilder::atom(AtomKind::Mod, rest, b);
  return divisor * mod(exact_quotient(rest, divisor), exact_quotient(b, divisor));
}

Sym min(const Sym& a, const Sym& b) {
  if (a.is_constant() && b.is_constant()) return Sym(std::min(a.constant(), b.constant()));
  return extremum(AtomKind::Min, a, b);
}

Sym max(const Sym& a, const Sym& b) {
  if (a.is_constant() && b.is_constant()) return Sym(std::max(a.constant(), b.constant()));
  return extremum(AtomKind::Max, a, b);
}

Sym ceildiv(const Sym& a, const Sym& b) { return -floordiv(-a, b); }

}  // namespace graphlift::ir
