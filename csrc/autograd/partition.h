// Owns: splitting a joint graph into forward and backward: what to save, what to compute again.
// Must not: derive gradients (torch's engine did) or know torch.
#pragma once

#include <memory>
#include <vector>

#include "ir/graph.h"

namespace graphlift::autograd {

struct PartitionOptions {
  // False: no operator that does work runs again in backward. Views are made again always: they cost nothing, and their
  // base is what memory pays for.
  bool recompute = true;
  const ir::ShapeEnv* shapes = nullptr;  // hints for sizes; null: a symbol counts as 64
};

struct Partition {
  std::unique_ptr<ir::Graph>
      forward;  // inputs: primals. Outputs: the joint's first `forward_outputs`, then saved values.
  std::unique_ptr<ir::Graph>
      backward;  // inputs: saved values (in order), then tangents. Outputs: gradients. Null: no gradients.
  struct Saved {
    int primal = -1;  // >= 0: the saved value is this primal itself
    int output = -1;  // >= 0: it is this forward output
    // both -1: an extra forward output
  };
  std::vector<Saved> saved;
  std::vector<ir::Sym> saved_symbols;  // reserved: symbols that backward needs are passed by value
};

// `joint`: inputs are `primals` primals, then tangents; outputs are `forward_outputs` values, then gradients.
//
// What is promised of the result, whatever is saved:
// - Calls with effects or random draws run once, in the order of the joint graph, those recorded in forward in forward.
// - Calls that depend on tangents, and calls that a checkpoint made again (must_recompute), run in backward. A
// checkpoint's
//   random draws are not drawn again: they are the saved ones of its first run, as torch restores the generator for it.
// - Of forward outputs only those are saved in place of what made them that backward reads in eager too, so that
// writing into
//   an output breaks no backward that eager would run.
Partition partition(const ir::Graph& joint, int primals, int forward_outputs, const PartitionOptions& options = {});

}  // namespace graphlift::autograd
