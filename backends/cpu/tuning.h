// Owns: the mode "max-autotune": which implementation of a contraction is the fastest here, measured while compiling
// and remembered in the process and on disk. Must not: run while a region runs.
#pragma once

#include <memory>

#include "backends/cpu/contraction.h"

namespace graphlift::cpu {

// Whether a mode asks for measurements.
bool asks_for_tuning(const std::string& mode);

// The fastest of the list for a spec; null as find_contraction(). With the GIL.
std::shared_ptr<const Contraction> tuned_contraction(const ContractionSpec& spec);

// Shows how far measuring has come while it lives: a bar on a terminal, or where the log of performance hints is on.
class TuningProgress {
 public:
  explicit TuningProgress(size_t operations);
  ~TuningProgress();
  TuningProgress(const TuningProgress&) = delete;
  TuningProgress& operator=(const TuningProgress&) = delete;
  void step();
};

// How many specs were measured in this process, for tests.
uint64_t tunings();

}  // namespace graphlift::cpu
