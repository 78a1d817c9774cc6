// Owns: a call's argument in a graph as shape rules see it. Must not: decide anything about results.
#pragma once

#include "ir/graph.h"
#include "ops/shape_rule.h"

namespace graphlift::ops {

// Values have to have types; the result points at them.
ShapeArg shape_arg(const ir::Arg& arg);

}  // namespace graphlift::ops
