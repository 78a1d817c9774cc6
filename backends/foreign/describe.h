// Owns: a graph as plain Python tuples, for graphlift.foreign.
// Must not: know torch.fx.
#pragma once

#include "base/ref.h"
#include "ir/graph.h"

namespace graphlift::foreign {

// (nodes, outputs): nodes in order, ("input", id, name), ("constant", id, index) or ("call", id, operator, arguments,
// dtype of the first result or None, source line). Arguments and outputs: None, numbers, strings, torch's dtypes,
// devices, layouts and memory formats, lists, ("value", id, output) and ("symbolic", "s0*4 + 1"). Throws python_error.
// Needs the GIL.
Ref describe(const ir::Graph& graph);

}  // namespace graphlift::foreign
