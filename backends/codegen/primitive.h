// Owns: the scalar operations that kernels are made of, and how values are reduced. Must not: know tensors, loops or a
// target.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "ir/type.h"

namespace graphlift::codegen {

enum class Prim : uint8_t {
#define PRIMITIVE(name, arity, result, cost) name,
#include "backends/codegen/primitives.def"
#undef PRIMITIVE
};

enum class PrimResult : uint8_t { Same, Bool, Single, Given };
enum class PrimCost : uint8_t { Free, Cheap, Costly };

struct PrimRow {
  std::string_view name;
  int arity;
  PrimResult result;
  PrimCost cost;
};

const PrimRow& row(Prim prim);

enum class ReduceKind : uint8_t { Sum, Prod, Min, Max, Any, All };
std::string_view name(ReduceKind kind);
// The primitive that joins two partial results.
Prim combiner(ReduceKind kind);

// The type in which values of a dtype are computed: float32 for the 16-bit floats, itself for the other plain types.
// Nullopt: no kernel computes with it (complex, float8, unsigned beyond uint8).
std::optional<ir::DType> compute_type(ir::DType dtype);

}  // namespace graphlift::codegen
