// Owns: the plain way to check a plan: every node fetched once, every guard run. What memo.h does quicker means the
// same. Must not: remember anything between calls.
#pragma once

#include "guards/plan.h"

namespace graphlift::guards {

// The first guard that did not hold.
struct Failure {
  enum class Part : uint8_t { None, Global, Fetch, Check, Leaf, Pair, DistinctObjects, Symbolic, DistinctSymbols };
  Part part = Part::None;
  int32_t index = 0;  // a node for Fetch, else a row of the plan's table of that part
};

// Borrowed, or null. `owned` keeps what registered fetches gave until the caller lets it go.
inline PyObject* fetch_node(const Node& node, const Roots& roots, PyObject* parent, Ref* owned) {
  if (node.fetch) return !node.fits || node.fits(parent) ? node.fetch(parent, node.step) : nullptr;
  if (node.owned >= 0) {
    owned[node.owned] = node.details->registered ? node.details->registered(parent, node.details->origin) : Ref();
    return owned[node.owned].get();
  }
  if (node.step.kind == OriginKind::Constant) return node.details->constant.get();
  return fetch_root(roots, node.step.kind, node.step.index);
}

inline bool really_missing(const Node& node, PyObject* parent) {
  return node.parent < 0 || surely_missing(parent, node.step);
}

// The guards on one node. `object` is not null.
bool run_checks(const Plan& plan, const Node& node, PyObject* object, Failure* failure);
bool run_leaves(const Plan& plan, const Node& node, PyObject* object, int64_t* symbols, Failure* failure);
bool run_globals(const Plan& plan, int64_t* symbols, Failure* failure);
bool run_symbolic(const Plan& plan, const int64_t* symbols, size_t symbol_count, Failure* failure);
bool run_pair(const Pair& pair, PyObject* const* slots);
bool run_distinct(const Distinct& distinct, PyObject* const* slots);

// All guards on nodes and pairs; not the globals, nor the symbolic ones. Fills `slots`, one per node.
bool walk(const Plan& plan, const Roots& roots, int64_t* symbols, PyObject** slots, Ref* owned, Failure* failure);

// Words for a failure, given what walk() left in `slots`.
std::string explain_failure(const Plan& plan, const Failure& failure, PyObject* const* slots, const int64_t* symbols);

}  // namespace graphlift::guards
