// Owns: GuardTree: global checks, then the objects (shortcut or walk), then the symbolic guards; delivery of what was
// fetched.
#include <algorithm>

#include "base/text.h"
#include "guards/ways.h"

namespace graphlift::guards {

struct GuardTree::Impl {
  Impl(GuardSet guards, const std::vector<OriginId>& fetches, size_t symbols, PyCodeObject* code)
      : plan(std::move(guards), fetches, code),
        symbol_count(symbols),
        memos(plan),
        walked(plan.nodes.size(), nullptr),
        owned(static_cast<size_t>(plan.owned_count)) {}

  bool run(const Roots& roots, int64_t* symbols);
  bool still_fails(const Roots& roots, int64_t* symbols);
  PyObject* fetch_path(int32_t node, const Roots& roots) const;
  void release();

  Plan plan;
  size_t symbol_count;
  Ways memos;
  std::vector<PyObject*> walked;     // slots of the last walk, unless a memo took them
  PyObject* const* found = nullptr;  // slots of the running check
  std::vector<Ref> owned;
  Failure last;  // the guard that failed in the check before this one
};

// Borrowed; null when a step finds nothing, or the path has a registered fetch.
PyObject* GuardTree::Impl::fetch_path(int32_t node, const Roots& roots) const {
  const Node& step = plan.nodes[static_cast<size_t>(node)];
  if (step.owned >= 0) return nullptr;
  PyObject* parent = step.parent < 0 ? nullptr : fetch_path(step.parent, roots);
  return step.parent >= 0 && !parent ? nullptr : fetch_node(step, roots, parent, nullptr);
}

// A region that did not fit the last call seldom fits the next: its failing guard is asked first. False decides
// nothing.
bool GuardTree::Impl::still_fails(const Roots& roots, int64_t* symbols) {
  const size_t index = static_cast<size_t>(last.index);
  if (last.part == Failure::Part::Check) {
    const Check& check = plan.checks[index];
    PyObject* object = fetch_path(check.node, roots);
    return object && !check.run(check, object);
  }
  if (last.part == Failure::Part::Leaf && symbol_count == 0) {  // with symbols it may depend on what others bind
    const Leaf& leaf = plan.leaves[index];
    PyObject* object = fetch_path(leaf.node, roots);
    return object && !leaf.check->check(object, symbols);
  }
  return false;
}

bool GuardTree::Impl::run(const Roots& roots, int64_t* symbols) {
  if (last.part != Failure::Part::None) {
    if (still_fails(roots, symbols)) return false;
    last = {};
  }
  if (!run_globals(plan, symbols, &last)) return false;
  const Outcome outcome = memos.run(plan, roots, symbols, owned.data(), &last);
  if (outcome == Outcome::Fail) return false;
  found = memos.slots();
  if (outcome == Outcome::Miss) {
    if (!walk(plan, roots, symbols, walked.data(), owned.data(), &last)) return false;
    found = memos.record(plan, &walked);
  }
  return run_symbolic(plan, symbols, symbol_count, &last);
}

// Letting go of objects may run Python code, even this check again.
void GuardTree::Impl::release() {
  for (Ref& ref : owned) Ref().swap(ref);
}

GuardTree::GuardTree(GuardSet guards, std::vector<OriginId> fetches, size_t symbol_count, PyCodeObject* code)
    : impl_(std::make_unique<Impl>(std::move(guards), fetches, symbol_count, code)) {}
GuardTree::~GuardTree() = default;

size_t GuardTree::fetch_count() const { return impl_->plan.fetches.size(); }
size_t GuardTree::symbol_count() const { return impl_->symbol_count; }

size_t GuardTree::guard_count() const {
  const Plan& plan = impl_->plan;
  return plan.checks.size() + plan.leaves.size() + plan.globals.size() + plan.symbolic.size() +
         plan.distinct_symbols.size() + plan.distinct_objects.size();
}

bool GuardTree::check(const Roots& roots, PyObject** fetched, int64_t* symbols) const {
  Impl& self = *impl_;
  const bool holds = self.run(roots, symbols);
  if (holds)
    for (size_t i = 0; i < self.plan.fetches.size(); ++i) fetched[i] = Py_NewRef(self.found[self.plan.fetches[i]]);
  if (!self.owned.empty()) self.release();
  return holds;
}

std::string GuardTree::explain(const Roots& roots) const {
  const Plan& plan = impl_->plan;
  Failure failure;
  std::vector<PyObject*> slots(plan.nodes.size(), nullptr);
  std::vector<int64_t> symbols(impl_->symbol_count, 0);
  std::vector<Ref> owned(static_cast<size_t>(plan.owned_count));
  if (run_globals(plan, symbols.data(), &failure) &&
      walk(plan, roots, symbols.data(), slots.data(), owned.data(), &failure))
    run_symbolic(plan, symbols.data(), symbols.size(), &failure);
  return explain_failure(plan, failure, slots.data(), symbols.data());
}

std::string GuardTree::text() const {
  const Plan& plan = impl_->plan;
  std::string out;
  auto line = [&](const std::string& words) { out += words + "\n"; };
  for (const auto& check : plan.globals) line(check->text(""));
  for (size_t i = 0; i < plan.nodes.size(); ++i) {
    const Node& node = plan.nodes[i];
    if (node.check_begin == node.check_end && node.leaf_begin == node.leaf_end) continue;
    const std::string origin = plan.text(static_cast<int32_t>(i));
    for (int32_t c = node.check_begin; c < node.check_end; ++c) {
      const Check& check = plan.checks[static_cast<size_t>(c)];
      const bool two = applies(check.kind) == Applies::TwoNodes;
      line(check_text(check, origin, two ? plan.text(static_cast<int32_t>(check.number)) : ""));
    }
    for (int32_t l = node.leaf_begin; l < node.leaf_end; ++l)
      line(plan.leaves[static_cast<size_t>(l)].check->text(origin));
  }
  const auto distinct = [&](const Distinct& guard, auto&& name) {
    const auto begin = guard.keys().begin();
    const std::vector<int32_t> apart(begin, begin + static_cast<std::ptrdiff_t>(guard.apart()));
    const std::vector<int32_t> others(begin + static_cast<std::ptrdiff_t>(guard.apart()), guard.keys().end());
    line(cat("no other one is ", join(apart, ", ", name), others.empty() ? "" : "; among ", join(others, ", ", name)));
  };
  for (const Distinct& guard : plan.distinct_objects) distinct(guard, [&](int32_t node) { return plan.text(node); });
  for (const Symbolic& guard : plan.symbolic) line(guard.text());
  for (const Distinct& guard : plan.distinct_symbols)
    distinct(guard, [](int32_t symbol) { return ir::Sym::symbol(symbol).str(); });
  return out;
}

int GuardTree::traverse(visitproc visit, void* arg) const { return impl_->plan.traverse(visit, arg); }

}  // namespace graphlift::guards
