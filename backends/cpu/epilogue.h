// Owns: calls behind a product or convolution as its post-ops, and where that is worth it: measured, see
// bench/RESULTS.md. Must not: measure at run time.
#pragma once

#include <optional>
#include <vector>

#include "backends/codegen/fuse.h"
#include "backends/cpu/contraction_post_op.h"

namespace graphlift::cpu {

// Post-ops for the calls behind an operation's first one; operands' strides are those of the first call's result.
// Nullopt: some call is no post-op, or a tensor lies otherwise.
std::optional<std::vector<PostOp>> post_ops(const codegen::NativeOperation& operation);

// Whether the operation is faster with these than with a kernel behind it.
bool worth_finishing(const codegen::NativeOperation& operation, const std::vector<PostOp>& post);

// Whether a call only gives memory without gaps other sizes.
bool is_plain_view(const ir::Node& call);

}  // namespace graphlift::cpu
