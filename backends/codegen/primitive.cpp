// Owns: the rows of primitives.def as a table.
#include "backends/codegen/primitive.h"

namespace graphlift::codegen {
namespace {

constexpr PrimRow kPrimitives[] = {
#define PRIMITIVE(name, arity, result, cost) {#name, arity, PrimResult::result, PrimCost::cost},
#include "backends/codegen/primitives.def"
#undef PRIMITIVE
};

struct ReduceRow {
  std::string_view name;
  Prim combiner;
};

constexpr ReduceRow kReductions[] = {{"sum", Prim::Add}, {"prod", Prim::Mul}, {"min", Prim::Min},
                                     {"max", Prim::Max}, {"any", Prim::Or},   {"all", Prim::And}};

}  // namespace

const PrimRow& row(Prim prim) { return kPrimitives[static_cast<size_t>(prim)]; }

std::string_view name(ReduceKind kind) { return kReductions[static_cast<size_t>(kind)].name; }
Prim combiner(ReduceKind kind) { return kReductions[static_cast<size_t>(kind)].combiner; }

std::optional<ir::DType> compute_type(ir::DType dtype) {
  switch (dtype) {
    case ir::DType::float16:
    case ir::DType::bfloat16:
      return ir::DType::float32;
    case ir::DType::float32:
    case ir::DType::float64:
    case ir::DType::int64:
    case ir::DType::int32:
    case ir::DType::int16:
    case ir::DType::int8:
    case ir::DType::uint8:
    case ir::DType::bool_:
      return dtype;
    default:
      return std::nullopt;
  }
}

}  // namespace graphlift::codegen
