// Owns: post-ops and dtypes in oneDNN's terms.
// Must not: know which primitive they are for.
#pragma once

#include <vector>

#include "backends/cpu/contraction_post_op.h"
#include "backends/cpu/onednn/library.h"

namespace graphlift::cpu::onednn {

// dnnl_data_type_undef where oneDNN has none.
dnnl_data_type_t data_type(ir::DType dtype);

// Attributes with the post-ops for an output of `sizes`; null where one of them can't be told to oneDNN.
Attributes post_op_attributes(const std::vector<PostOp>& post, const std::vector<int64_t>& sizes);

// DNNL_ARG_* of the operands of post-ops that read a tensor, in order.
std::vector<int> post_op_arguments(const std::vector<PostOp>& post);

}  // namespace graphlift::cpu::onednn
