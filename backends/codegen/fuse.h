// Owns: a graph with its kernels: lowered, grouped, and written again as a graph in which each kernel is one call,
// `graphlift::kernel(index, inputs)`, and each call that the backend takes itself is `graphlift::native(index, inputs)`
// on memory instead of views. Must not: know a target.
#pragma once

#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "backends/codegen/kernel_build.h"

namespace graphlift::codegen {

struct FuseOptions {
  LowerOptions lower;
  GroupOptions group;
  // Calls that the backend takes itself; they are not lowered.
  std::function<bool(const ir::Node&)> takes = {};
  // What may stand behind such a call and be computed with it; see epilogue.h.
  Finishes finishes = {};
  Besides besides = {};
  bool epilogues = true;
  bool horizontal = true;  // asked by the backend for fuse_horizontally()
  bool arena = true;       // asked by the backend when it makes the program
};

// A part of fusing that can be left out, as passes can.
struct Stage {
  std::string_view name;
  bool& (*flag)(FuseOptions&);
  std::string_view sentence;
};
std::span<const Stage> all_stages();
// Names of no stage are let pass: they may be passes.
void leave_out(const std::vector<std::string>& names, FuseOptions* options);

// A call that the backend takes: the original one, which lives as long as the graph that was fused, and how each of its
// tensors lies in the memory that the new call gets in its place (offset relative to that memory's first element).
struct NativeOperation {
  const ir::Node* node;
  std::vector<ir::TensorType> operands;  // of `node`, then those that the epilogue reads from outside
  Chain epilogue = {};                   // calls behind it that are computed with it
  // Of these calls, the first or one behind it whose result is one of the operation's, behind the last one's; null:
  // none.
  const ir::Node* kept = nullptr;
  // The last of the calls that are computed beside, whose result comes then; null: none.
  const ir::Node* beside = nullptr;
  const ir::Node& last() const { return epilogue.empty() ? *node : *epilogue.back(); }
};
// As the graph has it, every tensor on its own.
NativeOperation describe(const Chain& chain, int kept = -1);

// `graphlift::check_places(index, [tensor])` raises the error of an operator where the tensor, which lies in its memory
// as `type` says, holds places out of range.
struct CheckOperation {
  PlaceCheck what;
  ir::TensorType type;
};

// Where a kernel call's tensors go: the kernel's buffers are the call's first `reads` inputs, then its results, except
// for those that are written to an input that is read.
struct KernelMemory {
  struct Result {
    int target = -1;  // the call's input whose memory it is written to; -1: it has memory of its own
    bool buffer = true;
  };
  size_t reads = 0;
  std::vector<Result> results;
  int buffer_of(size_t result) const;
};

// Kernels of one program over different memory as one call, `graphlift::kernels(index, inputs)`: the inputs of the
// parts one after another, and so their results.
struct MultiKernel {
  struct Part {
    size_t kernel;  // in FusedGraph::kernels
    size_t inputs;  // how many of the call's are its own
  };
  std::vector<Part> parts;
  Kernel program;  // with symbol 0 as the number of elements of its one axis, or without an axis
};

struct FusedGraph {
  std::unique_ptr<ir::Graph> graph;
  std::vector<Kernel> kernels;
  std::vector<KernelMemory> memory;  // by kernel
  std::vector<NativeOperation> natives;
  std::vector<CheckOperation> checks;
  std::vector<MultiKernel> multis;
};

FusedGraph fuse(const ir::Graph& graph, const FuseOptions& options);
// What is wrong with it; empty: nothing.
std::string verify(const FusedGraph& fused);

const ir::Op& kernel_op();
const ir::Op& multi_kernel_op();
const ir::Op& native_op();
const ir::Op& check_op();
size_t index_of(const ir::Node& call);  // of a kernel, multi-kernel, native call or check: in its list

}  // namespace graphlift::codegen
