// Owns: a graph with its kernels: lowered, grouped, and written again as a graph in which each kernel is one call,
// `graphlift::kernel(index, inputs)`. Must not: know a target.
#pragma once

#include <memory>
#include <vector>

#include "backends/codegen/kernel_build.h"

namespace graphlift::codegen {

struct FuseOptions {
  LowerOptions lower;
  GroupOptions group;
};

struct FusedGraph {
  std::unique_ptr<ir::Graph> graph;
  std::vector<Kernel> kernels;  // buffers: the call's inputs, then its outputs
};

FusedGraph fuse(const ir::Graph& graph, const FuseOptions& options);

const ir::Op& kernel_op();

}  // namespace graphlift::codegen
