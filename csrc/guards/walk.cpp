// Owns: see walk.h.
#include "guards/walk.h"

#include "base/text.h"

namespace graphlift::guards {

namespace {

bool fail(Failure* failure, Failure::Part part, size_t index) {
  *failure = {part, static_cast<int32_t>(index)};
  return false;
}

}  // namespace

bool run_checks(const Plan& plan, const Node& node, PyObject* object, Failure* failure) {
  for (int32_t i = node.check_begin; i < node.check_end; ++i) {
    const Check& check = plan.checks[static_cast<size_t>(i)];
    if (!check.run(check, object)) return fail(failure, Failure::Part::Check, static_cast<size_t>(i));
  }
  return true;
}

bool run_leaves(const Plan& plan, const Node& node, PyObject* object, int64_t* symbols, Failure* failure) {
  for (int32_t i = node.leaf_begin; i < node.leaf_end; ++i)
    if (!plan.leaves[static_cast<size_t>(i)].check->check(object, symbols))
      return fail(failure, Failure::Part::Leaf, static_cast<size_t>(i));
  return true;
}

bool run_globals(const Plan& plan, int64_t* symbols, Failure* failure) {
  for (size_t i = 0; i < plan.globals.size(); ++i)
    if (!plan.globals[i]->check(nullptr, symbols)) return fail(failure, Failure::Part::Global, i);
  return true;
}

bool run_symbolic(const Plan& plan, const int64_t* symbols, size_t symbol_count, Failure* failure) {
  for (size_t i = 0; i < plan.symbolic.size(); ++i)
    if (!plan.symbolic[i].holds(symbols, symbol_count)) return fail(failure, Failure::Part::Symbolic, i);
  for (size_t i = 0; i < plan.distinct_symbols.size(); ++i)
    if (!plan.distinct_symbols[i].holds([&](int32_t symbol) { return symbols[symbol]; }))
      return fail(failure, Failure::Part::DistinctSymbols, i);
  return true;
}

bool run_distinct(const Distinct& distinct, PyObject* const* slots) {
  bool all = true;
  const bool differ = distinct.holds([&](int32_t node) {
    all &= slots[node] != nullptr;
    return static_cast<int64_t>(reinterpret_cast<intptr_t>(slots[node]));
  });
  return all && differ;
}

bool run_pair(const Pair& pair, PyObject* const* slots) {
  PyObject* left = slots[pair.left];
  PyObject* right = slots[pair.right];
  return left && right && (left == right) == pair.same;
}

bool walk(const Plan& plan, const Roots& roots, int64_t* symbols, PyObject** slots, Ref* owned, Failure* failure) {
  const int32_t count = static_cast<int32_t>(plan.nodes.size());
  for (int32_t i = 0; i < count;) {
    const Node& node = plan.nodes[static_cast<size_t>(i)];
    PyObject* parent = node.parent < 0 ? nullptr : slots[node.parent];
    PyObject* object = fetch_node(node, roots, parent, owned);
    slots[i] = object;
    if (!object) {
      if (!node.may_miss || !really_missing(node, parent))
        return fail(failure, Failure::Part::Fetch, static_cast<size_t>(i));
      for (int32_t below = i + 1; below < node.end; ++below) slots[below] = nullptr;
      i = node.end;
      continue;
    }
    if (!run_checks(plan, node, object, failure) || !run_leaves(plan, node, object, symbols, failure)) return false;
    ++i;
  }
  for (size_t i = 0; i < plan.pairs.size(); ++i)
    if (!run_pair(plan.pairs[i], slots)) return fail(failure, Failure::Part::Pair, i);
  for (size_t i = 0; i < plan.distinct_objects.size(); ++i)
    if (!run_distinct(plan.distinct_objects[i], slots)) return fail(failure, Failure::Part::DistinctObjects, i);
  for (int32_t node : plan.fetches)
    if (!slots[node]) return fail(failure, Failure::Part::Fetch, static_cast<size_t>(node));
  return true;
}

namespace {

std::string explain_distinct(const Plan& plan, const Distinct& distinct, PyObject* const* slots) {
  for (int32_t node : distinct.keys())
    if (!slots[node]) return cat(plan.text(node), " does not exist");
  const auto [left, right] = distinct.alike();
  return cat(plan.text(left), " is ", plan.text(right));
}

}  // namespace

std::string explain_failure(const Plan& plan, const Failure& failure, PyObject* const* slots, const int64_t* symbols) {
  const size_t index = static_cast<size_t>(failure.index);
  auto check_words = [&](const Check& check) {
    const bool two = applies(check.kind) == Applies::TwoNodes;
    return check_failure(check, plan.text(check.node), two ? plan.text(static_cast<int32_t>(check.number)) : "",
                         slots[check.node]);
  };
  switch (failure.part) {
    case Failure::Part::None:
      return "";
    case Failure::Part::Global:
      return plan.globals[index]->explain(nullptr);
    case Failure::Part::Fetch:
      return cat(plan.text(failure.index), " does not exist");
    case Failure::Part::Check:
      return check_words(plan.checks[index]);
    case Failure::Part::Leaf: {
      const Leaf& leaf = plan.leaves[index];
      return cat(plan.text(leaf.node), " ", leaf.check->explain(slots[leaf.node]));
    }
    case Failure::Part::Pair:
      return check_words(plan.checks[static_cast<size_t>(plan.pairs[index].check)]);
    case Failure::Part::DistinctObjects:
      return explain_distinct(plan, plan.distinct_objects[index], slots);
    case Failure::Part::Symbolic:
      return plan.symbolic[index].explain(symbols);
    case Failure::Part::DistinctSymbols: {
      const auto [left, right] = plan.distinct_symbols[index].alike();
      return cat(ir::Sym::symbol(left).str(), " and ", ir::Sym::symbol(right).str(), " are the same");
    }
  }
  return "";
}

}  // namespace graphlift::guards
