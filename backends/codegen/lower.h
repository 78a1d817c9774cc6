// Owns: lowering a whole graph: which calls become primitives, and which stay torch's. Must not: group primitives.
#pragma once

#include <functional>
#include <memory>
#include <unordered_map>
#include <vector>

#include "backends/codegen/epilogue.h"
#include "backends/codegen/tensor_graph.h"
#include "ir/graph.h"

namespace graphlift::codegen {

// How mean and variance of a batch are made.
enum class MomentPasses : uint8_t {
  Two,            // the second one waits for the mean
  One,            // sums of float32 in double
  OneAboutFirst,  // sums in double of what is left behind the first element is taken away
};

struct LowerOptions {
  int8_t device_type = 0;        // calls on other devices stay torch's
  bool round_each_call = false;  // 16-bit floats are rounded after each call, as eager does
  // Whether kernels may read at places from data, which somebody has to check (`check_op()` in fuse.h).
  bool gathers = false;
  bool places = false;  // at places computed from indices alone; `gathers` allows it, too
  MomentPasses moments = MomentPasses::Two;
  bool skips_loads = false;  // kernels read nothing of what a selection by place leaves out
  // Calls that the backend takes itself (contractions), though there may be a row.
  std::function<bool(const ir::Node&)> keeps = {};
  // Chains of calls that the backend takes as one: only their last call has a value, and what they keep.
  Epilogues epilogues = {};
};

// A call in program order.
struct LoweredCall {
  const ir::Node* node;
  bool external;               // torch's or the backend's own
  std::vector<Value> results;  // per output; null: none
};

struct Lowered {
  TensorGraph graph;
  std::unordered_map<ir::ValueRef, Value, ir::ValueHash> values;
  std::vector<LoweredCall> calls;  // views are no calls
  Epilogues epilogues;             // as given

  // What an external call reads, through the calls that are computed with it.
  Chain chain_of(const ir::Node& call) const;
  const Epilogue& epilogue_of(const ir::Node& call) const;
  // The external call that makes a call's result: itself, or the last one of a chain that gives it, too.
  const ir::Node* maker_of(const ir::Node& call) const;
  std::unordered_map<const ir::Node*, const ir::Node*> made_by = {};
};

std::unique_ptr<Lowered> lower(const ir::Graph& graph, const LowerOptions& options);

}  // namespace graphlift::codegen
