// Owns: the interface of passes over graphs, and the runner: order, skipping, checking, timing, bisection.
// Must not: know what a pass does. A pass is a free function in a file of its own with one row in pass.cpp.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ir/graph.h"

namespace graphlift::passes {

// Requirements on every pass:
// - What the outputs hold stays, and so does their aliasing: two outputs (or an output and an input) share memory after
// the
//   pass just where they did before, and no output becomes the same value as another one.
// - Calls with effects or random draws stay, each once, in their order.
// - Calls that a checkpoint makes again (must_recompute) are not merged with those of its first run.
// True: the graph was changed.
using PassFunction = bool (*)(ir::Graph* graph);

// When a pass runs: over forward and backward together, before they are parted, or over each of them behind that.
enum class Stage : uint8_t { Joint, Parted };

struct Pass {
  std::string_view name;
  PassFunction run;
  std::string_view sentence;  // what it does, for reports
  Stage stage = Stage::Parted;
};

// In the order in which they run.
std::span<const Pass> all_passes();
const Pass* find_pass(std::string_view name);  // null when there is none

struct PassOptions {
  std::vector<std::string> skip;  // names; an unknown one is an internal error (ask find_pass() first)
  bool verify = true;             // a malformed graph after a pass is an internal error that names the pass
  int most_changes = -1;          // stop after this many passes that changed the graph: bisects a wrong result
  std::function<void(const Pass&, const ir::Graph&)> after_change;  // for dumps
};

struct PassRecord {
  std::string_view name;
  bool changed = false;
  double seconds = 0;
  size_t nodes_before = 0, nodes_after = 0;
};

std::vector<PassRecord> run_passes(ir::Graph* graph, const PassOptions& options = {}, Stage stage = Stage::Parted);

// --- the passes ------------------------------------------------------------------------------------------------------

bool prefer_channels_last(ir::Graph* graph);
bool open_batch_norms(ir::Graph* graph);
bool restate_norm_outputs(ir::Graph* graph);
bool remove_redundant_views(ir::Graph* graph);
bool merge_common_subexpressions(ir::Graph* graph);
bool remove_dead_code(ir::Graph* graph);

}  // namespace graphlift::passes
