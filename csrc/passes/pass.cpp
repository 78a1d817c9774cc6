// Owns: the list of passes and running it.
// Must not: change a graph itself.
#include "passes/pass.h"

#include <algorithm>
#include <chrono>

#include "base/error.h"

namespace graphlift::passes {
namespace {

constexpr Pass kPasses[] = {
    {"channels_last", prefer_channels_last, "lays images between convolutions out with their channels last",
     Stage::Joint},
    {"batch_norms", open_batch_norms, "makes batch norms of cuDNN calls that say what they compute", Stage::Joint},
    {"norm_outputs", restate_norm_outputs, "makes outputs of batch norms of what their gradients keep", Stage::Joint},
    {"redundant_views", remove_redundant_views, "uses what a view looks at where both are the same tensor"},
    {"common_subexpressions", merge_common_subexpressions, "computes equal calls once"},
    {"dead_code", remove_dead_code, "drops calls that nobody reads"},
};

}  // namespace

std::span<const Pass> all_passes() { return kPasses; }

const Pass* find_pass(std::string_view name) {
  auto found =
      std::find_if(std::begin(kPasses), std::end(kPasses), [&](const Pass& pass) { return pass.name == name; });
  return found == std::end(kPasses) ? nullptr : found;
}

std::vector<PassRecord> run_passes(ir::Graph* graph, const PassOptions& options, Stage stage) {
  for (const std::string& name : options.skip) GL_CHECK(find_pass(name), "no pass has the name " + name);
  std::vector<PassRecord> records;
  int changes = 0;
  for (const Pass& pass : kPasses) {
    if (pass.stage != stage) continue;
    if (std::find(options.skip.begin(), options.skip.end(), pass.name) != options.skip.end()) continue;
    if (options.most_changes >= 0 && changes >= options.most_changes) break;
    PassRecord record{pass.name, false, 0, graph->nodes().size(), 0};
    auto begin = std::chrono::steady_clock::now();
    record.changed = pass.run(graph);
    record.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    record.nodes_after = graph->nodes().size();
    records.push_back(record);
    if (!record.changed) continue;
    ++changes;
    if (options.verify) {
      std::string wrong = ir::verify(*graph);
      GL_CHECK(wrong.empty(), "pass " + std::string(pass.name) + " left a malformed graph: " + wrong);
    }
    if (options.after_change) options.after_change(pass, *graph);
  }
  return records;
}

}  // namespace graphlift::passes
