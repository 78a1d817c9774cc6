// Owns: ir::Sym behind torch's SymInt: a SymNodeImpl whose arithmetic stays in ir:: and whose decisions become guards.
// Must not: know tensors or the recorder. No Python, no sympy.
#pragma once

#include <c10/core/SymBool.h>
#include <c10/core/SymInt.h>
#include <c10/core/SymIntArrayRef.h>

#include <optional>
#include <vector>

#include "ir/sym.h"
#include "ir/type.h"

namespace graphlift::torch_layer {

c10::SymInt to_sym_int(ir::ShapeEnv& env, const ir::Sym& value);
std::vector<c10::SymInt> to_sym_ints(ir::ShapeEnv& env, const ir::Dims& values);
// Constants pass; a node that is not ours (another tracer's) has no answer.
std::optional<ir::Sym> to_sym(const c10::SymInt& value);
// The number that a symbolic float or int node carries; records what it relied on.
double to_double(const c10::SymFloat& value);

}  // namespace graphlift::torch_layer
