// Owns: the mode "max-autotune" for generated kernels: which tiling of a schedule is the fastest, measured while
// compiling for kernels of constant sizes that move much memory, remembered in the process and on disk. Must not: run
// while a region runs.
#pragma once

#include <functional>
#include <map>
#include <vector>

#include "backends/codegen/fuse.h"
#include "backends/cuda/schedule.h"
#include "backends/cuda/stopwatch.h"

namespace graphlift::cuda {

class KernelTuner {
 public:
  KernelTuner(const codegen::FusedGraph& graph, const Target& target, Tuning tuning)
      : graph_(graph), target_(target), tuning_(tuning) {}

  // A `graphlift::kernel` call; those that are not worth it are let pass.
  void add(const ir::Node& node, const std::vector<bool>& by_value);
  size_t count() const { return added_.size(); }
  // By kernel: what to use instead of the usual tiling. With the GIL. `step`: one more is done.
  std::map<size_t, Tiling> run(const std::function<void()>& step);

 private:
  struct Added {
    const ir::Node* node;
    std::vector<bool> by_value;
    std::string key;
  };
  Tiling measured(const Added& it, const Place& place) const;

  const codegen::FusedGraph& graph_;
  const Target target_;
  const Tuning tuning_;
  std::vector<Added> added_;
};

// How many kernels were measured in this process, for tests.
uint64_t measured_kernels();

}  // namespace graphlift::cuda
