// Owns: a canonical contraction as oneDNN's matmul primitive.
// Must not: decide whether it is the best way.
#pragma once

#include <c10/util/SmallVector.h>

#include "backends/cpu/contraction.h"
#include "backends/cpu/onednn/primitive.h"

namespace graphlift::cpu::onednn {

enum class WeightLayout : uint8_t {
  Plain,   // B as the spec says
  Packed,  // B as the kernel likes it, the weight of its Variants
};

// Null, with the reason, where oneDNN has only reference loops or nothing.
std::unique_ptr<const Primitive> make_matmul(const ContractionSpec& spec, WeightLayout layout, std::string* why);

// B as the spec says.
MemoryDesc weight_desc(const ContractionSpec& spec);

// Calls `with(addresses)` with what a matmul primitive of `spec` needs, B replaced by `b`.
template <class With>
void run_matmul(const ContractionSpec& spec, const ContractionOperands& operands, const void* b, With&& with) {
  c10::SmallVector<void*, 8> addresses = {const_cast<void*>(operands.a), const_cast<void*>(b), operands.c};
  if (spec.bias != ir::DType::undefined) addresses.push_back(const_cast<void*>(operands.bias));
  size_t next = 0;
  for (const PostOp& it : spec.post)
    if (operand_of(it.kind) == PostOpOperand::Tensor) addresses.push_back(const_cast<void*>(operands.post[next++]));
  with(addresses.data());
}

}  // namespace graphlift::cpu::onednn
