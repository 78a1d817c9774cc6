// Owns: what measuring in the mode "max-autotune" has in common on all devices: choices kept on disk
// (graphlift.tuning), and the bar of progress. Must not: measure.
#pragma once

#include <cstddef>
#include <string>

namespace graphlift::codegen {

// Whether a mode asks for measurements.
bool asks_for_tuning(const std::string& mode);

// What won, by what was measured and where; empty: not known. With the GIL, as all that follows.
std::string remembered_choice(const std::string& key);
void remember_choice(const std::string& key, const std::string& choice);

// Shows how far measuring has come while it lives: a bar on a terminal, or where the log of performance hints is on.
class TuningProgress {
 public:
  explicit TuningProgress(size_t operations);
  ~TuningProgress();
  TuningProgress(const TuningProgress&) = delete;
  TuningProgress& operator=(const TuningProgress&) = delete;
  void step();
};

}  // namespace graphlift::codegen
