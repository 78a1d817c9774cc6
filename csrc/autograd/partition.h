// Owns: splitting a joint graph into forward and backward: what to save, what to compute again.
// Must not: derive gradients (torch's engine did) or know torch.
#pragma once

#include <memory>
#include <vector>

#include "ir/graph.h"

namespace graphlift::autograd {

struct PartitionOptions {
  bool recompute = true;  // false: save everything that backward reads
};

struct Partition {
  std::unique_ptr<ir::Graph> forward;   // inputs: primals. Outputs: the joint's first `forward_outputs`, then saved values.
  std::unique_ptr<ir::Graph> backward;  // inputs: saved values (in order), then tangents. Outputs: gradients. Null: no gradients.
  struct Saved {
    int primal = -1;  // >= 0: the saved value is this primal itself
    int output = -1;  // >= 0: it is this forward output
    // both -1: an extra forward output
  };
  std::vector<Saved> saved;
  std::vector<ir::Sym> saved_symbols;  // reserved: symbols that backward needs are passed by value
};

// `joint`: inputs are `primals` primals, then tangents; outputs are `forward_outputs` values, then gradients.
Partition partition(const ir::Graph& joint, int primals, int forward_outputs, const PartitionOptions& options = {});

}  // namespace graphlift::autograd
