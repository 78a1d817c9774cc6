// Owns: which values of a graph share memory with its inputs, by the operators' schemas.
// Must not: look at data.
#pragma once

#include <optional>

#include "ir/graph.h"

namespace graphlift::torch_layer {

// The value that `value` is a view of, through any number of view calls: itself when it has memory of its own.
ir::ValueRef memory_owner(ir::ValueRef value);

}  // namespace graphlift::torch_layer
