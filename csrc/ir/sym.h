// Owns: symbolic integers (sizes, strides, offsets, varying ints) and what was assumed about them.
// Must not: know tensors, Python or torch.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace graphlift::ir {

using SymbolId = int32_t;
struct Factor;
struct SymExpr;  // immutable; canonical: a sum of integer multiples of products of atoms (symbols, floordiv, mod, min,
                 // max)

// An integer expression. Constants are inline and allocate nothing. Equal expressions have equal canonical forms.
class Sym {
 public:
  Sym(int64_t constant = 0) : constant_(constant) {}  // NOLINT: implicit on purpose, sizes are mostly constants
  static Sym symbol(SymbolId id);

  bool is_constant() const { return !expr_; }
  int64_t constant() const { return constant_; }  // precondition: is_constant()
  const SymExpr* expr() const { return expr_.get(); }

  friend Sym operator+(const Sym& a, const Sym& b);
  friend Sym operator-(const Sym& a, const Sym& b);
  friend Sym operator*(const Sym& a, const Sym& b);
  Sym operator-() const;
  friend Sym floordiv(const Sym& a, const Sym& b);  // Python's //
  friend Sym mod(const Sym& a, const Sym& b);       // Python's %
  friend Sym min(const Sym& a, const Sym& b);
  friend Sym max(const Sym& a, const Sym& b);

  bool same(const Sym& other) const;  // equal for all values of the symbols, as far as the canonical form tells
  // Value for given symbol values, indexed by SymbolId.
  int64_t eval(std::span<const int64_t> symbols) const { return is_constant() ? constant_ : eval_expr(symbols); }
  std::string str() const;                         // "s0*4 + 1"
  void collect(std::vector<SymbolId>* out) const;  // symbols in it, each once

 private:
  int64_t eval_expr(std::span<const int64_t> symbols) const;
  explicit Sym(std::shared_ptr<const SymExpr> expr);
  friend struct SymBuilder;
  int64_t constant_ = 0;
  std::shared_ptr<const SymExpr> expr_;
};

Sym ceildiv(const Sym& a, const Sym& b);

enum class Relation : uint8_t { Eq, Ne, Lt, Le };  // Gt and Ge are written with the sides swapped

struct SymGuard {
  Relation relation;
  Sym left, right;
  std::string str() const;
  bool holds(std::span<const int64_t> symbols) const;
};

// Symbols with the values they had while capturing (hints), and the relations that the capture relied on.
// Sizes of tensors are >= 1 when symbolic (0 is specialized before a symbol is made). No value that is computed
// from symbols reaches 2^62, so a constant beyond that is a bound that no symbolic value touches.
class ShapeEnv {
 public:
  Sym new_symbol(int64_t hint, std::string name, int64_t lower_bound = 2);
  int64_t hint(const Sym& value) const;
  const std::string& name(SymbolId id) const;
  size_t symbol_count() const { return hints_.size(); }
  std::span<const int64_t> hints() const { return hints_; }

  // Decided without the hints, from canonical forms, bounds and guards so far; nothing is recorded.
  std::optional<bool> known(Relation relation, const Sym& a, const Sym& b) const;
  // Decided by the hints; recorded as a guard unless known. The answer is what the hints say.
  bool guard(Relation relation, const Sym& a, const Sym& b);
  // Fixes the expression to its hint (records an equality unless constant) and returns it.
  int64_t specialize(const Sym& value);
  const std::vector<SymGuard>& guards() const { return guards_; }
  // The same value, with what equality guards said put in: after a guard s1 == s0, s1 becomes s0.
  Sym simplify(const Sym& value) const;

 private:
  struct Replacement {
    Sym from;  // one symbol or atom
    Sym to;    // holds no replaced symbol or atom
  };

  std::optional<Sym> replacement_of(const Factor& factor) const;
  int64_t lower_bound(const Sym& value, int facts) const;
  bool is_nonzero(const Sym& value) const;
  Sym fold_known_mods(const Sym& value) const;
  std::optional<bool> decide(Relation relation, const Sym& difference) const;
  void learn(Relation relation, const Sym& difference);
  void learn_zero(const Sym& value);
  void learn_nonnegative(const Sym& value);
  void replace(const Sym& from, const Sym& to);

  std::vector<int64_t> hints_;
  std::vector<int64_t> lower_bounds_, upper_bounds_;  // tightened by guards
  std::vector<std::string> names_;
  std::vector<SymGuard> guards_;
  // What guards_ say, in forms that decide fast.
  std::vector<Replacement> replacements_;
  std::vector<int32_t> replaced_symbols_;  // by SymbolId: index in replacements_, -1: none
  std::vector<Sym> nonnegative_, nonzero_;
  int learning_ = 0;  // depth of learn_zero()
};

}  // namespace graphlift::ir
