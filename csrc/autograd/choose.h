// Owns: the choice of what forward saves for backward and what backward computes again.
// Must not: build graphs.
#pragma once

#include <vector>

#include "autograd/joint.h"
#include "autograd/partition.h"

namespace graphlift::autograd {

struct Choice {
  std::vector<bool> saved;  // by value: where backward needs it, it is passed from forward
  std::vector<bool> again;  // by call: runs in backward, although it could run in forward
};

// A minimum cut: least bytes saved plus the price of running operators again; of equal ones that with the least run
// again.
Choice choose(const Joint& joint, const PartitionOptions& options);

}  // namespace graphlift::autograd
