// Owns: random draws of a checkpoint's second run.
// Must not: touch anything else.
#pragma once

#include <memory>

#include "ir/graph.h"

namespace graphlift::autograd {

// torch restores the generator for a checkpoint's second run, so its draws are those of the first. Gives the graph in
// which the second draws are replaced by the first ones; null when there are none. A draw that has no first one, or
// several that look alike, is an internal error: guessing would give wrong gradients.
std::unique_ptr<ir::Graph> with_first_draws(const ir::Graph& joint);

}  // namespace graphlift::autograd
