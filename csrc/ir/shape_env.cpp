// Owns: what is known of symbols: hints, bounds, and the guards that a capture relied on.
// Must not: decide anything from a hint without recording it.
#include <algorithm>
#include <numeric>

#include "base/error.h"
#include "ir/sym.h"
#include "ir/sym_expr.h"
#include "ir/sym_range.h"

namespace graphlift::ir {
namespace {

bool is_equality(Relation relation) { return relation == Relation::Eq || relation == Relation::Ne; }

bool compare_values(Relation relation, int64_t a, int64_t b) {
  switch (relation) {
    case Relation::Eq:
      return a == b;
    case Relation::Ne:
      return a != b;
    case Relation::Lt:
      return a < b;
    case Relation::Le:
      return a <= b;
  }
  return false;
}

int64_t coefficient_gcd(const Sym& value) {
  int64_t gcd = 0;
  for (const Term& term : terms_of(value)) gcd = std::gcd(gcd, term.coefficient);
  return gcd;
}

// value >= 0 for all integers just when the result >= 0: the common factor of the coefficients is divided out.
Sym reduced(const Sym& value) {
  int64_t gcd = coefficient_gcd(value);
  return gcd > 1 ? floordiv(value - Sym(floor_modulo(constant_part(value), gcd)), Sym(gcd)) : value;
}

bool contains(const Sym& value, const Factor& wanted) {
  for (const Term& term : terms_of(value)) {
    for (const Factor& factor : term.factors) {
      if (compare(factor, wanted) == 0) return true;
      if (factor.atom && (contains(factor.atom->left, wanted) || contains(factor.atom->right, wanted))) return true;
    }
  }
  return false;
}

// Without the common factor of all coefficients, if the constant has it too.
Sym primitive(const Sym& value) {
  int64_t gcd = std::gcd(coefficient_gcd(value), constant_part(value));
  return gcd > 1 ? floordiv(value, Sym(gcd)) : value;
}

bool share_product(const Sym& a, const Sym& b) {
  for (const Term& x : terms_of(a))
    for (const Term& y : terms_of(b))
      if ((x.coefficient < 0) == (y.coefficient < 0) && compare_products(x.factors, y.factors) == 0) return true;
  return false;
}

bool beyond_limit(const Sym& value) {
  return value.is_constant() && (value.constant() >= kNumberLimit || value.constant() <= -kNumberLimit);
}

}  // namespace

bool SymGuard::holds(std::span<const int64_t> symbols) const {
  return compare_values(relation, left.eval(symbols), right.eval(symbols));
}

Sym ShapeEnv::new_symbol(int64_t hint, std::string name, int64_t lower_bound) {
  GL_CHECK(hint >= lower_bound && hint < kNumberLimit && lower_bound > -kNumberLimit,
           "a symbol's hint is outside its bounds");
  SymbolId id = static_cast<SymbolId>(hints_.size());
  hints_.push_back(hint);
  lower_bounds_.push_back(lower_bound);
  upper_bounds_.push_back(Range::kNoUpper);
  names_.push_back(std::move(name));
  replaced_symbols_.push_back(-1);
  return Sym::symbol(id);
}

int64_t ShapeEnv::hint(const Sym& value) const { return value.eval(hints_); }

const std::string& ShapeEnv::name(SymbolId id) const {
  GL_CHECK(id >= 0 && static_cast<size_t>(id) < names_.size(), "no such symbol");
  return names_[id];
}

// --- equalities ------------------------------------------------------------------------------------------------------

std::optional<Sym> ShapeEnv::replacement_of(const Factor& factor) const {
  if (!factor.atom) {
    size_t id = static_cast<size_t>(factor.symbol);
    if (id < replaced_symbols_.size() && replaced_symbols_[id] >= 0) return replacements_[replaced_symbols_[id]].to;
    return std::nullopt;
  }
  for (const Replacement& replacement : replacements_)
    if (compare(terms_of(replacement.from)[0].factors[0], factor) == 0) return replacement.to;
  return std::nullopt;
}

Sym ShapeEnv::simplify(const Sym& value) const {
  constexpr int kRounds = 3;  // a rebuilt quotient may split into new atoms
  Sym result = value;
  for (int round = 0; round < kRounds && !replacements_.empty(); ++round) {
    Sym next = substitute(result, [this](const Factor& factor) { return replacement_of(factor); });
    if (next.expr() == result.expr()) break;
    result = next;
  }
  return result;
}

// y*(x//y) becomes x - c where a guard said x%y == c.
Sym ShapeEnv::fold_known_mods(const Sym& value) const {
  Sym result = value;
  for (const Replacement& replacement : replacements_) {
    const Factor& from = terms_of(replacement.from)[0].factors[0];
    if (!from.atom || from.atom->kind != AtomKind::Mod) continue;
    const Sym &x = from.atom->left, &y = from.atom->right;
    Sym quotient = SymBuilder::atom(AtomKind::FloorDiv, x, y);
    const Factor& wanted = terms_of(quotient)[0].factors[0];
    const Sym before = result;  // keeps the terms alive
    for (const Term& term : terms_of(before)) {
      auto found = std::find_if(term.factors.begin(), term.factors.end(),
                                [&](const Factor& factor) { return compare(factor, wanted) == 0; });
      if (found == term.factors.end()) continue;
      std::vector<Factor> others(term.factors.begin(), found);
      others.insert(others.end(), found + 1, term.factors.end());
      Sym scale = SymBuilder::term(term.coefficient, std::move(others));
      Sym rest = mod(scale, y);
      if (!rest.is_constant() || rest.constant() != 0) continue;
      result = result - SymBuilder::term(term.coefficient, term.factors) + floordiv(scale, y) * (x - replacement.to);
    }
  }
  return result;
}

// Everything known so far is written anew, so that no replaced symbol or atom is left in it.
void ShapeEnv::replace(const Sym& from, const Sym& to) {
  std::vector<Replacement> replacements = std::move(replacements_);
  std::vector<Sym> nonnegative = std::move(nonnegative_), nonzero = std::move(nonzero_), zero;
  replacements_.clear();
  nonnegative_.clear();
  nonzero_.clear();
  std::fill(replaced_symbols_.begin(), replaced_symbols_.end(), -1);
  replacements.insert(replacements.begin(), {from, to});
  for (Replacement& old : replacements) {
    const Factor& factor = terms_of(old.from)[0].factors[0];
    if (factor.atom && !simplify(old.from).same(old.from)) {
      zero.push_back(old.from - old.to);  // an operand was replaced: this is another atom now
      continue;
    }
    Sym simple = simplify(old.to);
    if (!factor.atom) replaced_symbols_[factor.symbol] = static_cast<int32_t>(replacements_.size());
    replacements_.push_back({old.from, simple});
  }
  for (const Sym& fact : zero)
    if (Sym simple = simplify(fact); !simple.is_constant()) learn_zero(simple);
  for (const Sym& fact : nonnegative) learn_nonnegative(simplify(fact));
  for (const Sym& fact : nonzero) nonzero_.push_back(simplify(fact));
  // What was known of the symbol is known of its replacement.
  const Factor& factor = terms_of(from)[0].factors[0];
  if (factor.atom) return;
  int64_t lower = lower_bounds_[factor.symbol], upper = upper_bounds_[factor.symbol];
  Sym now = simplify(to);
  if (lower != Range::kNoLower) learn_nonnegative(now - Sym(lower));
  if (upper != Range::kNoUpper) learn_nonnegative(Sym(upper) - simplify(now));
}

// --- deciding --------------------------------------------------------------------------------------------------------

// From bounds and, for `facts` > 0, from up to that many guards added up.
int64_t ShapeEnv::lower_bound(const Sym& value, int facts) const {
  SymbolBounds bounds{lower_bounds_, upper_bounds_};
  int64_t best = range(value, bounds).lower;
  if (best >= 0 || value.is_constant()) return best;
  best = std::max(best, shifted_lower_bound(value, bounds));
  if (best >= 0 || facts == 0) return best;
  for (const Sym& fact : nonnegative_) {
    if (!share_product(value, fact)) continue;
    best = std::max(best, lower_bound(value - fact, facts - 1));
    if (best >= 0) break;
  }
  return best;
}

bool ShapeEnv::is_nonzero(const Sym& value) const {
  int64_t gcd = coefficient_gcd(value);
  if (gcd != 0 && constant_part(value) % gcd != 0) return true;
  if (nonzero_.empty()) return false;
  Sym wanted = primitive(value), negated = -wanted;
  return std::any_of(nonzero_.begin(), nonzero_.end(),
                     [&](const Sym& fact) { return fact.same(wanted) || fact.same(negated); });
}

// difference RELATION 0, where Lt and Le read 0 < difference, 0 <= difference.
std::optional<bool> ShapeEnv::decide(Relation relation, const Sym& difference) const {
  if (difference.is_constant()) return compare_values(relation, 0, difference.constant());
  const bool equal = relation == Relation::Eq;
  auto [lowest, highest] = range(difference, {lower_bounds_, upper_bounds_});
  if (is_equality(relation) && (lowest > 0 || highest < 0)) return !equal;
  if (!is_equality(relation) && lowest >= (relation == Relation::Lt ? 1 : 0)) return true;
  if (!is_equality(relation) && highest < (relation == Relation::Lt ? 1 : 0)) return false;

  const size_t known = nonnegative_.size();
  const int facts = known <= 8 ? 3 : known <= 32 ? 2 : 1;  // the search takes known^facts steps
  auto at_least = [&](const Sym& value, int64_t bound) { return lower_bound(reduced(value - Sym(bound)), facts) >= 0; };
  const Sym negated = -difference;
  const bool nonzero = is_nonzero(difference);
  if (is_equality(relation) && nonzero) return !equal;
  const bool nonnegative = at_least(difference, 0), nonpositive = at_least(negated, 0);
  const bool positive = nonnegative && (nonzero || at_least(difference, 1));
  const bool negative = nonpositive && (nonzero || at_least(negated, 1));
  switch (relation) {
    case Relation::Lt:
      return positive ? std::optional(true) : nonpositive ? std::optional(false) : std::nullopt;
    case Relation::Le:
      return nonnegative ? std::optional(true) : negative ? std::optional(false) : std::nullopt;
    default:
      if (nonnegative && nonpositive) return equal;
      return positive || negative ? std::optional(!equal) : std::nullopt;
  }
}

std::optional<bool> ShapeEnv::known(Relation relation, const Sym& a, const Sym& b) const {
  if (a.is_constant() && b.is_constant()) return compare_values(relation, a.constant(), b.constant());
  if (a.expr() == b.expr()) return relation == Relation::Eq || relation == Relation::Le;
  if (beyond_limit(b)) return compare_values(relation, 0, b.constant());
  if (beyond_limit(a)) return compare_values(relation, a.constant(), 0);
  Sym difference = simplify(is_equality(relation) ? a - b : b - a);
  if (auto answer = decide(relation, difference)) return answer;
  if (replacements_.empty()) return std::nullopt;
  Sym folded = fold_known_mods(difference);
  return folded.expr() == difference.expr() ? std::nullopt : decide(relation, folded);
}

// --- guarding --------------------------------------------------------------------------------------------------------

void ShapeEnv::learn_zero(const Sym& value) {
  // What is learnt may rewrite what was learnt. Forgetting a fact is sound: then its guard is no help, and no more.
  constexpr int kDepth = 16;
  if (learning_ >= kDepth) return;
  ++learning_;
  Sym zero = reduced(value);
  auto terms = terms_of(zero);
  const Term* best = nullptr;
  for (const Term& term : terms) {
    if (term.factors.size() != 1 || (term.coefficient != 1 && term.coefficient != -1)) continue;
    const Factor& factor = term.factors[0];
    bool elsewhere = contains(zero - SymBuilder::term(term.coefficient, term.factors), factor);
    if (elsewhere) continue;
    // Later symbols are written in earlier ones, and symbols rather than atoms go.
    bool better = !best || (!factor.atom && (best->factors[0].atom || best->factors[0].symbol < factor.symbol));
    if (better) best = &term;
  }
  if (!best) {
    learn_nonnegative(zero);
    learn_nonnegative(-zero);
  } else {
    Sym rest = zero - SymBuilder::term(best->coefficient, best->factors);
    replace(SymBuilder::term(1, best->factors), best->coefficient == 1 ? -rest : rest);
  }
  --learning_;
}

void ShapeEnv::learn_nonnegative(const Sym& value) {
  if (value.is_constant()) return;
  Sym fact = reduced(value);
  auto terms = terms_of(fact);
  bool bound = terms.size() == 1 && terms[0].factors.size() == 1 && !terms[0].factors[0].atom;
  if (!bound) {
    nonnegative_.push_back(fact);
    return;
  }
  SymbolId id = terms[0].factors[0].symbol;
  int64_t& lower = lower_bounds_[id];
  int64_t& upper = upper_bounds_[id];
  if (terms[0].coefficient > 0) {
    lower = std::max(lower, -constant_part(fact));  // reduced: the coefficient is 1
  } else {
    upper = std::min(upper, constant_part(fact));
  }
  if (lower == upper && replaced_symbols_[id] < 0) replace(Sym::symbol(id), Sym(lower));
}

// `difference` as in decide().
void ShapeEnv::learn(Relation relation, const Sym& difference) {
  Sym simple = simplify(difference);
  if (simple.is_constant()) return;
  switch (relation) {
    case Relation::Eq:
      return learn_zero(simple);
    case Relation::Lt:
      return learn_nonnegative(simple - Sym(1));
    case Relation::Le:
      return learn_nonnegative(simple);
    case Relation::Ne:
      break;
  }
  Sym lowest = simple - Sym(1), highest = -simple - Sym(1);
  if (lower_bound(simple, 0) == 0) return learn_nonnegative(lowest);
  if (lower_bound(-simple, 0) == 0) return learn_nonnegative(highest);
  nonzero_.push_back(primitive(simple));
}

bool ShapeEnv::guard(Relation relation, const Sym& a, const Sym& b) {
  if (auto answer = known(relation, a, b)) return *answer;
  bool answer = compare_values(relation, hint(a), hint(b));
  SymGuard guard{relation, a, b};
  if (!answer) {
    switch (relation) {
      case Relation::Eq:
        guard.relation = Relation::Ne;
        break;
      case Relation::Ne:
        guard.relation = Relation::Eq;
        break;
      case Relation::Lt:
        guard = {Relation::Le, b, a};
        break;
      case Relation::Le:
        guard = {Relation::Lt, b, a};
        break;
    }
  }
  learn(guard.relation, is_equality(guard.relation) ? guard.left - guard.right : guard.right - guard.left);
  guards_.push_back(std::move(guard));
  return answer;
}

int64_t ShapeEnv::specialize(const Sym& value) {
  if (value.is_constant()) return value.constant();
  int64_t fixed = hint(value);
  guard(Relation::Eq, value, Sym(fixed));
  return fixed;
}

}  // namespace graphlift::ir
