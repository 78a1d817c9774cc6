// Owns: the canonical form of a contraction: the same numbers at the same addresses with as few dimensions as possible,
// so that implementations see one kind of spec. Must not: choose an implementation, or copy data.
#pragma once

#include "backends/cpu/contraction.h"

namespace graphlift::cpu {

// No batch dimension of size 1; neighbours that are one dimension in memory are one; a batch over which B is broadcast
// is rows of A where A, C and the operands allow it; strides of dimensions of size 1 say dense.
ContractionSpec canonical(ContractionSpec spec);

// Whether C is stored by columns and C^T = B^T A^T, which then is stored by rows, can be told as a spec: no bias.
bool should_transpose(const ContractionSpec& canonical);
// That product: A and B change places, in the operands of a run too.
ContractionSpec transposed(ContractionSpec canonical);

// Whether C has no elements.
bool is_empty(const ContractionSpec& spec);

// Where an operand has the wrong number of strides, a broadcast C, and the like; empty when the spec can be computed.
std::string invalid(const ContractionSpec& spec);

}  // namespace graphlift::cpu
