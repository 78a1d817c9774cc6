// Owns: which primitives share a kernel. A group has axes, and each member's dims are lists of axes; the reduced axes
// are the same for all reductions of a group. Must not: choose loops, or know a target.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "backends/codegen/lower.h"

namespace graphlift::codegen {

// Per dim: the axes that it consists of, outermost first; empty for a dim of size 1.
using AxisMap = std::vector<std::vector<int>>;
// As far as it is known.
using PartialMap = std::vector<std::optional<std::vector<int>>>;

struct Group {
  int unit = 0;
  std::vector<ir::Sym> extents;  // by axis
  std::vector<bool> reduced;     // by axis
  std::vector<Value> members;    // computed nodes, in program order; Join nodes are members without a map
  std::unordered_map<const TensorNode*, AxisMap> maps;  // of members and of what they read
  // Members that are reduced across rows, over the axes that are not reduced otherwise, and what is made of them. No
  // other members read them.
  std::unordered_set<const TensorNode*> across;
  bool closed = false;

  bool has_reduction() const;
};

struct Grouping {
  std::vector<std::unique_ptr<Group>> groups;
  std::unordered_map<const TensorNode*, Group*> group_of;
  // Computed where they are used, never stored.
  std::unordered_set<const TensorNode*> inlined;
  // Computed nodes whose memory is needed outside their group.
  std::unordered_set<const TensorNode*> stored;
  // Strides of those that lie otherwise than their value's type says.
  std::unordered_map<const TensorNode*, ir::Dims> layouts;
  // Join nodes that no kernel fills: torch's cat.
  std::unordered_set<const ir::Node*> external_joins;
  // Groups and external calls in an order in which they can run.
  struct Step {
    const Group* group = nullptr;  // or:
    const ir::Node* external = nullptr;
  };
  std::vector<Step> steps;
};

struct GroupOptions {
  bool fuse = true;          // false: one call, one kernel
  bool inline_cheap = true;  // false: each value that a call makes is stored
  // Whether element-wise work joins a reduction to few results: false where only as many threads would do it.
  bool few_results = false;
  size_t most_members = 96;
  // Reductions across rows of up to so many elements are made by the kernel of the rows; 0: the backend has no such
  // kernels.
  int64_t most_across = 0;
};

Grouping group(const ir::Graph& graph, const Lowered& lowered, const GroupOptions& options = {});

}  // namespace graphlift::codegen
