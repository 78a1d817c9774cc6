// Owns: how long work on a GPU takes, by its own clock. Must not: know what the work is.
#pragma once

#include <functional>
#include <vector>

#include "backends/cuda/launch.h"

namespace graphlift::cuda {

// Whether work on the place's stream runs now: not while the program records it.
bool may_measure(const Place& place);

// The least time of each of several ways to do the same, in microseconds, one run in turn; `seconds`: for all of them
// together, about. One that throws gets infinity.
std::vector<double> measure(const Place& place, const std::vector<std::function<void()>>& ways, double seconds);

// What a choice is remembered with: which GPU, by name.
std::string gpu_name(const Place& place);

}  // namespace graphlift::cuda
