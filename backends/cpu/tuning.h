// Owns: the mode "max-autotune": which implementation of a contraction is the fastest here, measured while compiling
// and remembered in the process and on disk. Must not: run while a region runs.
#pragma once

#include <memory>

#include "backends/cpu/contraction.h"

namespace graphlift::cpu {

// The fastest of the list for a spec; null as find_contraction(). With the GIL.
std::shared_ptr<const Contraction> tuned_contraction(const ContractionSpec& spec);

// How many specs were measured in this process, for tests.
uint64_t tunings();

}  // namespace graphlift::cpu
