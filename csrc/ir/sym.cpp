// Owns: sums and products of symbolic integers, their order, evaluation and substitution.
// Must not: divide (sym_divide.cpp) or print (sym_text.cpp).
#include "ir/sym.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/error.h"
#include "ir/sym_expr.h"

namespace graphlift::ir {

int64_t checked_add(int64_t a, int64_t b) {
  int64_t sum;
  GL_CHECK(!__builtin_add_overflow(a, b, &sum), "a symbolic integer left 64 bits");
  return sum;
}

int64_t checked_mul(int64_t a, int64_t b) {
  int64_t product;
  GL_CHECK(!__builtin_mul_overflow(a, b, &product), "a symbolic integer left 64 bits");
  return product;
}

int64_t floor_divide(int64_t a, int64_t b) {
  GL_CHECK(b != 0, "a symbolic integer was divided by zero");
  if (b == -1) return checked_mul(a, -1);
  int64_t quotient = a / b;
  return quotient - ((a % b != 0 && (a < 0) != (b < 0)) ? 1 : 0);
}

int64_t floor_modulo(int64_t a, int64_t b) {
  GL_CHECK(b != 0, "a symbolic integer was divided by zero");
  if (b == -1) return 0;
  int64_t rest = a % b;
  return rest + ((rest != 0 && (rest < 0) != (b < 0)) ? b : 0);
}

std::strong_ordering compare(const Factor& a, const Factor& b) {
  if (!a.atom || !b.atom) {
    if (a.atom) return std::strong_ordering::greater;
    if (b.atom) return std::strong_ordering::less;
    return a.symbol <=> b.symbol;
  }
  if (a.atom == b.atom) return std::strong_ordering::equal;
  if (auto order = a.atom->kind <=> b.atom->kind; order != 0) return order;
  if (auto order = compare(a.atom->left, b.atom->left); order != 0) return order;
  return compare(a.atom->right, b.atom->right);
}

std::strong_ordering compare_products(const std::vector<Factor>& a, const std::vector<Factor>& b) {
  if (a.size() != b.size()) return b.size() <=> a.size();
  for (size_t i = 0; i < a.size(); ++i)
    if (auto order = compare(a[i], b[i]); order != 0) return order;
  return std::strong_ordering::equal;
}

std::strong_ordering compare(const Sym& a, const Sym& b) {
  if (a.expr() == b.expr()) return a.is_constant() ? a.constant() <=> b.constant() : std::strong_ordering::equal;
  auto left = terms_of(a), right = terms_of(b);
  if (left.size() != right.size()) return left.size() <=> right.size();
  for (size_t i = 0; i < left.size(); ++i) {
    if (auto order = compare_products(left[i].factors, right[i].factors); order != 0) return order;
    if (auto order = left[i].coefficient <=> right[i].coefficient; order != 0) return order;
  }
  return constant_part(a) <=> constant_part(b);
}

int64_t constant_part(const Sym& value) { return value.is_constant() ? value.constant() : value.expr()->constant; }

std::span<const Term> terms_of(const Sym& value) {
  return value.is_constant() ? std::span<const Term>() : std::span<const Term>(value.expr()->terms);
}

Sym SymBuilder::canonical(std::vector<Term> terms, int64_t constant) {
  if (terms.empty()) return Sym(constant);
  return Sym(std::make_shared<const SymExpr>(SymExpr{std::move(terms), constant}));
}

Sym SymBuilder::sum(std::vector<Term> terms, int64_t constant) {
  std::sort(terms.begin(), terms.end(),
            [](const Term& a, const Term& b) { return compare_products(a.factors, b.factors) < 0; });
  size_t kept = 0;
  for (size_t i = 0; i < terms.size(); ++i) {
    if (kept > 0 && compare_products(terms[kept - 1].factors, terms[i].factors) == 0) {
      terms[kept - 1].coefficient = checked_add(terms[kept - 1].coefficient, terms[i].coefficient);
      continue;
    }
    if (kept > 0 && terms[kept - 1].coefficient == 0) --kept;
    if (kept != i) terms[kept] = std::move(terms[i]);
    ++kept;
  }
  if (kept > 0 && terms[kept - 1].coefficient == 0) --kept;
  terms.resize(kept);
  return canonical(std::move(terms), constant);
}

Sym SymBuilder::term(int64_t coefficient, std::vector<Factor> factors) {
  if (coefficient == 0) return Sym(0);
  if (factors.empty()) return Sym(coefficient);
  std::vector<Term> terms;
  terms.push_back({coefficient, std::move(factors)});
  return canonical(std::move(terms), 0);
}

Sym SymBuilder::atom(AtomKind kind, Sym left, Sym right) {
  Factor factor{-1, std::make_shared<const SymAtom>(SymAtom{kind, std::move(left), std::move(right)})};
  return term(1, {std::move(factor)});
}

Sym::Sym(std::shared_ptr<const SymExpr> expr) : expr_(std::move(expr)) {}

Sym Sym::symbol(SymbolId id) { return SymBuilder::term(1, {Factor{id, nullptr}}); }

namespace {

// a + scale * b by one merge: both are sorted.
Sym add_scaled(const Sym& a, const Sym& b, int64_t scale) {
  int64_t constant = checked_add(constant_part(a), checked_mul(scale, constant_part(b)));
  auto left = terms_of(a), right = terms_of(b);
  std::vector<Term> terms;
  terms.reserve(left.size() + right.size());
  size_t i = 0, j = 0;
  while (i < left.size() || j < right.size()) {
    auto order = i == left.size()    ? std::strong_ordering::greater
                 : j == right.size() ? std::strong_ordering::less
                                     : compare_products(left[i].factors, right[j].factors);
    if (order < 0) {
      terms.push_back(left[i++]);
    } else if (order > 0) {
      terms.push_back({checked_mul(scale, right[j].coefficient), right[j].factors});
      ++j;
    } else {
      int64_t coefficient = checked_add(left[i].coefficient, checked_mul(scale, right[j].coefficient));
      if (coefficient != 0) terms.push_back({coefficient, left[i].factors});
      ++i, ++j;
    }
  }
  return SymBuilder::canonical(std::move(terms), constant);
}

Sym scaled(const Sym& a, int64_t scale) {
  if (scale == 1) return a;
  if (scale == 0) return Sym(0);
  std::vector<Term> terms(terms_of(a).begin(), terms_of(a).end());
  for (Term& term : terms) term.coefficient = checked_mul(term.coefficient, scale);
  return SymBuilder::canonical(std::move(terms), checked_mul(constant_part(a), scale));
}

std::vector<Factor> product(const std::vector<Factor>& a, const std::vector<Factor>& b) {
  std::vector<Factor> factors;
  factors.reserve(a.size() + b.size());
  std::merge(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(factors),
             [](const Factor& x, const Factor& y) { return compare(x, y) < 0; });
  return factors;
}

Sym expand_product(const Sym& a, const Sym& b) {
  auto left = terms_of(a), right = terms_of(b);
  std::vector<Term> terms;
  terms.reserve((left.size() + 1) * (right.size() + 1));
  for (const Term& x : left) {
    for (const Term& y : right)
      terms.push_back({checked_mul(x.coefficient, y.coefficient), product(x.factors, y.factors)});
    if (constant_part(b) != 0) terms.push_back({checked_mul(x.coefficient, constant_part(b)), x.factors});
  }
  if (constant_part(a) != 0)
    for (const Term& y : right) terms.push_back({checked_mul(y.coefficient, constant_part(a)), y.factors});
  return SymBuilder::sum(std::move(terms), checked_mul(constant_part(a), constant_part(b)));
}

int64_t eval_factor(const Factor& factor, std::span<const int64_t> symbols) {
  if (!factor.atom) {
    GL_CHECK(factor.symbol >= 0 && static_cast<size_t>(factor.symbol) < symbols.size(), "a symbol has no value");
    return symbols[factor.symbol];
  }
  int64_t left = factor.atom->left.eval(symbols), right = factor.atom->right.eval(symbols);
  switch (factor.atom->kind) {
    case AtomKind::FloorDiv:
      return floor_divide(left, right);
    case AtomKind::Mod:
      return floor_modulo(left, right);
    case AtomKind::Min:
      return std::min(left, right);
    case AtomKind::Max:
      return std::max(left, right);
  }
  return 0;
}

}  // namespace

Sym operator+(const Sym& a, const Sym& b) {
  if (a.is_constant() && b.is_constant()) return Sym(checked_add(a.constant_, b.constant_));
  if (b.is_constant() && b.constant_ == 0) return a;
  if (a.is_constant() && a.constant_ == 0) return b;
  return add_scaled(a, b, 1);
}

Sym operator-(const Sym& a, const Sym& b) {
  if (a.is_constant() && b.is_constant()) return Sym(checked_add(a.constant_, checked_mul(b.constant_, -1)));
  if (b.is_constant() && b.constant_ == 0) return a;
  if (a.expr_ == b.expr_) return Sym(0);
  return add_scaled(a, b, -1);
}

Sym operator*(const Sym& a, const Sym& b) {
  if (a.is_constant() && b.is_constant()) return Sym(checked_mul(a.constant_, b.constant_));
  if (b.is_constant()) return scaled(a, b.constant_);
  if (a.is_constant()) return scaled(b, a.constant_);
  return expand_product(a, b);
}

Sym Sym::operator-() const { return is_constant() ? Sym(checked_mul(constant_, -1)) : scaled(*this, -1); }

bool Sym::same(const Sym& other) const { return compare(*this, other) == 0; }

int64_t Sym::eval_expr(std::span<const int64_t> symbols) const {
  int64_t sum = expr_->constant;
  for (const Term& term : expr_->terms) {
    int64_t product = term.coefficient;
    for (const Factor& factor : term.factors) product = checked_mul(product, eval_factor(factor, symbols));
    sum = checked_add(sum, product);
  }
  return sum;
}

void Sym::collect(std::vector<SymbolId>* out) const {
  for (const Term& term : terms_of(*this)) {
    for (const Factor& factor : term.factors) {
      if (factor.atom) {
        factor.atom->left.collect(out);
        factor.atom->right.collect(out);
      } else if (std::find(out->begin(), out->end(), factor.symbol) == out->end()) {
        out->push_back(factor.symbol);
      }
    }
  }
}

namespace {

Sym rebuilt(const Factor& factor, const std::function<std::optional<Sym>(const Factor&)>& replacement) {
  if (!factor.atom) {
    if (auto value = replacement(factor)) return *value;
    return Sym::symbol(factor.symbol);
  }
  const SymAtom& atom = *factor.atom;
  Sym left = substitute(atom.left, replacement), right = substitute(atom.right, replacement);
  Sym same = SymBuilder::term(1, {factor});
  if (left.expr() != atom.left.expr() || right.expr() != atom.right.expr()) {
    switch (atom.kind) {
      case AtomKind::FloorDiv:
        same = floordiv(left, right);
        break;
      case AtomKind::Mod:
        same = mod(left, right);
        break;
      case AtomKind::Min:
        same = min(left, right);
        break;
      case AtomKind::Max:
        same = max(left, right);
        break;
    }
  }
  auto terms = terms_of(same);
  bool single =
      terms.size() == 1 && terms[0].factors.size() == 1 && terms[0].coefficient == 1 && constant_part(same) == 0;
  if (!single) return same;
  if (auto value = replacement(terms[0].factors[0])) return *value;
  return same;
}

}  // namespace

Sym substitute(const Sym& value, const std::function<std::optional<Sym>(const Factor&)>& replacement) {
  if (value.is_constant()) return value;
  bool changed = false;
  Sym sum(value.expr()->constant);
  for (const Term& term : value.expr()->terms) {
    Sym product(term.coefficient);
    for (const Factor& factor : term.factors) {
      Sym next = rebuilt(factor, replacement);
      auto terms = terms_of(next);
      changed |= terms.size() != 1 || terms[0].factors.size() != 1 || terms[0].coefficient != 1 ||
                 constant_part(next) != 0 || compare(terms[0].factors[0], factor) != 0;
      product = product * next;
    }
    sum = sum + product;
  }
  return changed ? sum : value;
}

}  // namespace graphlift::ir
