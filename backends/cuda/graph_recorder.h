// Owns: recording launches as CUDA graphs, through torch's own, so that its allocator and random numbers go along.
#pragma once

#include "backends/cuda/replay.h"

namespace graphlift::cuda {

std::shared_ptr<const Recorder> make_graph_recorder(c10::Device device);

}  // namespace graphlift::cuda
