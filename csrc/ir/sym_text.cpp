// Owns: the text of symbolic integers and relations. ir/parse reads it back.
// Must not: simplify.
#include <string>

#include "ir/sym.h"
#include "ir/sym_expr.h"

namespace graphlift::ir {
namespace {

bool is_call(const Factor& factor) {
  return factor.atom && (factor.atom->kind == AtomKind::Min || factor.atom->kind == AtomKind::Max);
}

// One symbol or call, which needs no parentheses beside an operator.
bool is_simple(const Sym& value) {
  if (value.is_constant()) return value.constant() >= 0;
  auto terms = terms_of(value);
  return terms.size() == 1 && constant_part(value) == 0 && terms[0].coefficient == 1 && terms[0].factors.size() == 1 &&
         (!terms[0].factors[0].atom || is_call(terms[0].factors[0]));
}

std::string operand(const Sym& value) { return is_simple(value) ? value.str() : "(" + value.str() + ")"; }

std::string text(const Factor& factor) {
  if (!factor.atom) return "s" + std::to_string(factor.symbol);
  const SymAtom& atom = *factor.atom;
  switch (atom.kind) {
    case AtomKind::FloorDiv:
      return operand(atom.left) + "//" + operand(atom.right);
    case AtomKind::Mod:
      return operand(atom.left) + "%" + operand(atom.right);
    case AtomKind::Min:
      return "min(" + atom.left.str() + ", " + atom.right.str() + ")";
    case AtomKind::Max:
      return "max(" + atom.left.str() + ", " + atom.right.str() + ")";
  }
  return "";
}

// The size of a coefficient without its sign, also for the lowest one.
std::string magnitude(int64_t value) {
  uint64_t bits = static_cast<uint64_t>(value);
  return std::to_string(value < 0 ? 0 - bits : bits);
}

std::string product(const Term& term) {
  std::string size = magnitude(term.coefficient);
  bool alone = term.factors.size() == 1 && size == "1";
  std::string result;
  for (const Factor& factor : term.factors) {
    if (!result.empty()) result += "*";
    bool plain = alone || !factor.atom || is_call(factor);
    result += plain ? text(factor) : "(" + text(factor) + ")";
  }
  return size == "1" ? result : result + "*" + size;
}

}  // namespace

std::string Sym::str() const {
  if (is_constant()) return std::to_string(constant_);
  std::string result;
  for (const Term& term : expr_->terms) {
    bool negative = term.coefficient < 0;
    if (result.empty()) {
      bool compound = term.factors[0].atom && term.factors.size() == 1 && !is_call(term.factors[0]);
      std::string body = product(term);
      if (negative) result = compound && body[0] != '(' ? "-(" + body + ")" : "-" + body;
      if (!negative) result = body;
    } else {
      result += (negative ? " - " : " + ") + product(term);
    }
  }
  int64_t constant = expr_->constant;
  if (constant != 0) result += (constant < 0 ? " - " : " + ") + magnitude(constant);
  return result;
}

std::string SymGuard::str() const {
  static constexpr const char* kSigns[] = {" == ", " != ", " < ", " <= "};
  return left.str() + kSigns[static_cast<int>(relation)] + right.str();
}

}  // namespace graphlift::ir
