// Owns: a guard set laid out flat for checking: nodes of the trie in preorder, the checks of each in order of cost.
// Must not: hold what varies from call to call (memo.h), or fetch (walk.h).
#pragma once

#include <memory>
#include <vector>

#include "guards/checks.h"
#include "guards/distinct.h"
#include "guards/fetch.h"
#include "guards/symbolic.h"

namespace graphlift::guards {

// What a node needs besides the walk: words, constants and registered fetches.
struct NodeDetails {
  FetchStep registered = nullptr;
  Handle constant;  // root Constant
  Origin origin;    // a constant's key is left out
};

// One origin, with what a walk touches. Its subtree is [its own number, end).
struct Node {
  Step step;
  RawFetch fetch = nullptr;           // null for roots and registered kinds
  bool (*fits)(PyObject*) = nullptr;  // null when any parent fits
  const NodeDetails* details = nullptr;
  int32_t parent = -1;  // comes before this node
  int32_t end = 0;
  int32_t check_begin = 0, check_end = 0;
  int32_t leaf_begin = 0, leaf_end = 0;
  int32_t owned = -1;     // place of the reference that a registered fetch gave
  bool may_miss = false;  // Missing is all that is asked of it
};

struct Leaf {
  int32_t node;
  std::unique_ptr<LeafCheck> check;
};

struct Pair {
  int32_t left, right;
  int32_t check;
  bool same;
};

struct Plan {
  Plan(GuardSet guards, const std::vector<OriginId>& origins_to_fetch, PyCodeObject* code_of_frame);

  std::vector<Node> nodes;
  std::vector<std::unique_ptr<NodeDetails>> details;  // by node
  std::vector<Check> checks;
  std::vector<Leaf> leaves;
  std::vector<Pair> pairs;
  std::vector<std::unique_ptr<LeafCheck>> globals;
  std::vector<Symbolic> symbolic;
  std::vector<Distinct> distinct_symbols;  // keys: symbols
  std::vector<Distinct> distinct_objects;  // keys: nodes
  std::vector<int32_t> fetches;            // nodes
  int32_t owned_count = 0;
  Ref code;

  std::string text(int32_t node) const;
  int traverse(visitproc visit, void* arg) const;
};

}  // namespace graphlift::guards
