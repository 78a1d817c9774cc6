// Owns: see symbolic.h.
#include "guards/symbolic.h"

#include <algorithm>

#include "base/error.h"
#include "base/text.h"

namespace graphlift::guards {

namespace {

bool related(ir::Relation relation, int64_t left, int64_t right) {
  switch (relation) {
    case ir::Relation::Eq:
      return left == right;
    case ir::Relation::Ne:
      return left != right;
    case ir::Relation::Lt:
      return left < right;
    case ir::Relation::Le:
      return left <= right;
  }
  return false;
}

}  // namespace

Symbolic::Side Symbolic::side_of(const ir::Sym& value) {
  if (value.is_constant()) return {true, -1, value.constant()};
  std::vector<ir::SymbolId> symbols;
  value.collect(&symbols);
  if (symbols.size() == 1 && value.same(ir::Sym::symbol(symbols[0]))) return {true, symbols[0], 0};
  return {};
}

Symbolic::Symbolic(ir::SymGuard guard)
    : guard_(std::move(guard)), left_(side_of(guard_.left)), right_(side_of(guard_.right)) {}

bool Symbolic::holds(const int64_t* symbols, size_t count) const {
  if (left_.simple && right_.simple)
    return related(guard_.relation, left_.symbol < 0 ? left_.constant : symbols[left_.symbol],
                   right_.symbol < 0 ? right_.constant : symbols[right_.symbol]);
  try {
    return guard_.holds({symbols, count});
  } catch (const InternalError&) {
    return false;
  }
}

std::string Symbolic::explain(const int64_t* symbols) const {
  std::vector<ir::SymbolId> used;
  guard_.left.collect(&used);
  guard_.right.collect(&used);
  std::sort(used.begin(), used.end());
  used.erase(std::unique(used.begin(), used.end()), used.end());
  return cat(guard_.str(), " does not hold for ",
             join(used, ", ", [&](ir::SymbolId id) { return cat(ir::Sym::symbol(id).str(), " = ", symbols[id]); }));
}

}  // namespace graphlift::guards
