// Owns: scalar values as CUDA C++ expressions: types, numbers, primitives. Must not: know loops or memory.
#pragma once

#include <string>
#include <vector>

#include "backends/codegen/primitive.h"

namespace graphlift::cuda {

const char* compute_name(ir::DType type);  // of a compute type
const char* memory_name(ir::DType type);   // as elements lie in memory
std::string number_text(double value, ir::DType type);
std::string number_text(int64_t value, ir::DType type);

// `type`: of the result; `operand`: of args, the last one for Select.
std::string primitive_text(codegen::Prim prim, const std::vector<std::string>& args, ir::DType operand, ir::DType type);

std::string identity_text(codegen::ReduceKind kind, ir::DType type);
std::string combine_name(codegen::ReduceKind kind);  // a class with `of(a, b)`

}  // namespace graphlift::cuda
