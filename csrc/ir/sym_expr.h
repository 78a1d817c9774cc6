// Owns: the inside of Sym: canonical polynomials over atoms. Only ir/ includes this.
// Must not: be mutated once shared.
#pragma once

#include <compare>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "ir/sym.h"

namespace graphlift::ir {

enum class AtomKind : uint8_t { FloorDiv, Mod, Min, Max };

// An operation that sums and products can't express. Its operands are canonical, so equal atoms have equal operands.
struct SymAtom {
  AtomKind kind;
  Sym left, right;
};

// A symbol, or an atom when `atom` is set.
struct Factor {
  SymbolId symbol = -1;
  std::shared_ptr<const SymAtom> atom;
};

// Invariants: coefficient != 0; factors are not empty and sorted by compare().
struct Term {
  int64_t coefficient = 0;
  std::vector<Factor> factors;
};

// Invariants: terms are not empty and strictly ascending by compare() of their products; the higher degree comes first.
struct SymExpr {
  std::vector<Term> terms;
  int64_t constant = 0;
};

std::strong_ordering compare(const Factor& a, const Factor& b);
// Products only, coefficients aside. An admissible monomial order: multiplying both sides keeps it.
std::strong_ordering compare_products(const std::vector<Factor>& a, const std::vector<Factor>& b);
std::strong_ordering compare(const Sym& a, const Sym& b);

struct SymBuilder {
  // `terms` need not be sorted or unique.
  static Sym sum(std::vector<Term> terms, int64_t constant);
  // `terms` hold SymExpr's invariants, but may be empty.
  static Sym canonical(std::vector<Term> terms, int64_t constant);
  static Sym term(int64_t coefficient, std::vector<Factor> factors);
  static Sym atom(AtomKind kind, Sym left, Sym right);
};

// The constant summand, and the other terms (none for a constant).
int64_t constant_part(const Sym& value);
std::span<const Term> terms_of(const Sym& value);

// Integers for which overflow is an internal error: a size beyond 64 bits never reaches a tensor.
int64_t checked_add(int64_t a, int64_t b);
int64_t checked_mul(int64_t a, int64_t b);
int64_t floor_divide(int64_t a, int64_t b);  // Python's //; b != 0
int64_t floor_modulo(int64_t a, int64_t b);  // Python's %; b != 0

// Replaces factors for which `replacement` has an answer (symbols, and atoms after their operands were replaced).
Sym substitute(const Sym& value, const std::function<std::optional<Sym>(const Factor&)>& replacement);

}  // namespace graphlift::ir
