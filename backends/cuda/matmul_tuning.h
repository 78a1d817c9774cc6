// Owns: the mode "max-autotune" for products on a GPU: which implementation and algorithm is the fastest, and whether
// what stands behind a product is better done with it; measured while compiling, remembered in the process and on disk.
// Must not: run while a region runs.
#pragma once

#include <memory>

#include "backends/cuda/matmul.h"
#include "backends/cuda/stopwatch.h"

namespace graphlift::cuda {

// The fastest way to compute a spec. With the GIL, as what follows.
std::shared_ptr<const Matmul> tuned_matmul(const MatmulSpec& spec, Tuning tuning);

// Whether the spec takes no longer than its product and a kernel that finishes it.
bool worth_finishing(const MatmulSpec& spec, Tuning tuning);

// How many specs were measured in this process, for tests.
uint64_t measured_matmuls();

}  // namespace graphlift::cuda
