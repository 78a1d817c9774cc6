// Owns: the single numbers that a graph for another device computes on the CPU (step counters, what follows from
// them), as kernels of the CPU. Must not: take anything else of such a graph.
#pragma once

#include "backend/backend.h"
#include "backends/codegen/fuse.h"
#include "backends/reference/program.h"

namespace graphlift::cpu {

class HostKernels {
 public:
  // Refers to `graph`, unless some of its calls became kernels.
  HostKernels(const ir::Graph& graph, const backend::Options& how);
  // With `graphlift::host_kernel(index, inputs)` and `graphlift::host_kernels(index, inputs)` for such calls.
  const ir::Graph& graph() const { return fused_.graph ? *fused_.graph : original_; }
  // Null: none of those.
  std::unique_ptr<reference::NativeCall> make_call(const ir::Node& node) const;

 private:
  const ir::Graph& original_;
  codegen::FusedGraph fused_;
};

}  // namespace graphlift::cpu
