// Owns: the types of views that more than one family needs. Must not: make fresh memory.
#pragma once

#include "ops/layout.h"
#include "ops/shape_rule.h"

namespace graphlift::ops {

// Each changes `type` into the view's; false: out of range.
bool narrow(ir::ShapeEnv& env, ir::TensorType& type, int dim, ir::Sym start, ir::Sym end, const ir::Sym& step);
bool select(ir::ShapeEnv& env, ir::TensorType& type, int64_t dim, const ir::Sym& index);
bool diagonal(ir::ShapeEnv& env, ir::TensorType& type, int64_t offset, int64_t first, int64_t second);
// Arguments first..first+3 are dim, start, end, step.
bool slice(ShapeCall& call, ir::TensorType& type, size_t first);
// A negative index counts from the end; nullopt: out of range.
std::optional<ir::Sym> wrap_index(ir::ShapeEnv& env, const ir::Sym& index, const ir::Sym& size);

}  // namespace graphlift::ops
