// Owns: how long work on a GPU takes, by its own clock. Must not: know what the work is.
#pragma once

#include <functional>
#include <vector>

#include "backends/cuda/launch.h"

namespace graphlift::cuda {

// Whether work on the place's stream runs now: not while the program records it.
bool may_measure(const Place& place);

// What is measured for.
enum class Tuning : uint8_t {
  None,
  Launched,  // call by call: the host's time counts where it is the longer one
  Recorded,  // as a CUDA graph
};

// In microseconds.
struct Time {
  double device;  // when work waits for the GPU
  double host;    // to launch it
  double counted(Tuning tuning) const { return tuning == Tuning::Launched && host > device ? host : device; }
};

// The least times of each of several ways to do the same, one after another in turn; `seconds`: for all of them
// together, about. One that throws takes forever.
std::vector<Time> measure(const Place& place, const std::vector<std::function<void()>>& ways, double seconds);
// The quickest way: another one than the first, the usual one, has to be ahead by more than noise.
size_t quickest(const std::vector<Time>& times, Tuning tuning);

// What a choice is remembered with: which GPU, by name.
std::string gpu_name(const Place& place);

}  // namespace graphlift::cuda
