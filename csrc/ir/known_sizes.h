// Owns: writing sizes with what guards say of their symbols: of two that are equal, one; for one that is fixed, its
// number. Must not: rely on what is no guard.
#pragma once

#include "ir/graph.h"

namespace graphlift::ir {

// In arguments and types of all nodes.
void put_known_sizes(Graph* graph, const ShapeEnv& shapes);
void put_known_sizes(TensorType* type, const ShapeEnv& shapes);

}  // namespace graphlift::ir
