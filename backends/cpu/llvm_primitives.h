// Owns: LLVM IR for scalar primitives and for reductions, lane by lane. Must not: know loops or memory.
#pragma once

#include "backends/codegen/primitive.h"
#include "backends/cpu/llvm_code.h"

namespace graphlift::cpu {

// `type`: the type of the result.
Reg emit_primitive(Code& code, codegen::Prim prim, const std::vector<Reg>& args, ir::DType type);
// The value that changes nothing.
Reg emit_identity(Code& code, codegen::ReduceKind kind, ir::DType type, int lanes);
// All lanes of a vector as one scalar.
Reg emit_horizontal(Code& code, codegen::ReduceKind kind, const Reg& vector);

// --- functions of llvm_math.cpp: float32 polynomials ---
Reg emit_exp(Code& code, const Reg& x);
Reg emit_log(Code& code, const Reg& x);
Reg emit_tanh(Code& code, const Reg& x);
Reg emit_sigmoid(Code& code, const Reg& x);
Reg emit_erf(Code& code, const Reg& x);

}  // namespace graphlift::cpu
