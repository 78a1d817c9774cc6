// Owns: backward graphs for tangents that are undefined (symbolic zeros). Must not: change what a defined gradient is.
#pragma once

#include <memory>
#include <vector>

#include "ir/graph.h"

namespace graphlift::torch_layer {

// `backward`: inputs are saved values, then tangents. The same graph for the case that the tangents with defined[i] ==
// false are undefined, as torch's engine treats them: what depends on undefined tangents alone is undefined (None among
// the outputs), sums lose a term, and elsewhere zeros stand in. The inputs stay as they are.
std::unique_ptr<ir::Graph> without_tangents(const ir::Graph& backward, size_t saved, const std::vector<bool>& defined);

}  // namespace graphlift::torch_layer
