// Owns: collecting guards, each once.
#include <algorithm>
#include <typeinfo>

#include "guards/constant.h"
#include "guards/guard.h"

namespace graphlift::guards {

namespace {

bool same_operand(PyObject* a, PyObject* b) { return a == b || (a && b && constants_equal(a, b)); }

size_t entry_hash(OriginId where, GuardKind kind, PyObject* operand, int64_t number) {
  size_t hash = static_cast<size_t>(where) * 31 + static_cast<size_t>(kind);
  hash = hash * 1000003 ^ static_cast<size_t>(number);
  return hash * 1000003 ^ (operand ? constant_hash(operand) : 0);
}

}  // namespace

void GuardSet::add(OriginId where, GuardKind kind, PyObject* operand, int64_t number) {
  std::vector<size_t>& bucket = entries_by_hash_[entry_hash(where, kind, operand, number)];
  for (size_t i : bucket) {
    const Entry& known = entries[i];
    if (known.where == where && known.kind == kind && known.number == number &&
        same_operand(known.operand.get(), operand))
      return;
  }
  bucket.push_back(entries.size());
  entries.push_back({where, kind, Ref::borrow(operand), number});
}

void GuardSet::add_check(OriginId where, std::unique_ptr<LeafCheck> check) {
  const LeafCheck& added = *check;
  std::vector<size_t>& here = checks_by_origin_[where];
  for (size_t i : here) {
    const LeafCheck& known = *checks[i].second;
    if (typeid(known) == typeid(added)) return;
  }
  here.push_back(checks.size());
  checks.emplace_back(where, std::move(check));
}

void GuardSet::add_global(std::unique_ptr<LeafCheck> check) {
  const LeafCheck& added = *check;
  const bool known = std::any_of(globals.begin(), globals.end(), [&](const auto& row) {
    const LeafCheck& one = *row;
    return typeid(one) == typeid(added) && one.text("") == added.text("");
  });
  if (!known) globals.push_back(std::move(check));
}

void GuardSet::add_symbolic(const ir::SymGuard& guard) {
  const bool known = std::any_of(symbolic.begin(), symbolic.end(), [&](const ir::SymGuard& one) {
    return one.relation == guard.relation && one.left.same(guard.left) && one.right.same(guard.right);
  });
  if (!known) symbolic.push_back(guard);
}

void GuardSet::add_distinct_symbols(std::vector<ir::SymbolId> apart, std::vector<ir::SymbolId> others) {
  if (!apart.empty() && apart.size() + others.size() > 1)
    distinct_symbols.push_back({std::move(apart), std::move(others)});
}

void GuardSet::add_distinct_objects(std::vector<OriginId> apart, std::vector<OriginId> others) {
  if (!apart.empty() && apart.size() + others.size() > 1)
    distinct_objects.push_back({std::move(apart), std::move(others)});
}

void GuardSet::bind_symbol(OriginId int_object, ir::SymbolId symbol, int64_t lowest) {
  const bool known = std::any_of(int_symbols.begin(), int_symbols.end(),
                                 [&](const IntSymbol& one) { return one.where == int_object && one.symbol == symbol; });
  if (!known) int_symbols.push_back({int_object, symbol, lowest});
}

}  // namespace graphlift::guards
