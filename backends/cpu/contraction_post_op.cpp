// Owns: the columns of the table of post-ops.
#include "backends/cpu/contraction_post_op.h"

#include <array>

namespace graphlift::cpu {
namespace {

constexpr PostOpOperand None = PostOpOperand::None;
constexpr PostOpOperand Tensor = PostOpOperand::Tensor;
constexpr PostOpOperand Output = PostOpOperand::Output;

struct PostOpRow {
  std::string_view name;
  PostOpOperand operand;
};
constexpr std::array kPostOps = {
#define ROW(identifier, name, operand, formula) PostOpRow{name, operand},
    GRAPHLIFT_POST_OPS(ROW)
#undef ROW
};

}  // namespace

std::string_view name(PostOpKind kind) { return kPostOps[static_cast<size_t>(kind)].name; }
PostOpOperand operand_of(PostOpKind kind) { return kPostOps[static_cast<size_t>(kind)].operand; }

}  // namespace graphlift::cpu
