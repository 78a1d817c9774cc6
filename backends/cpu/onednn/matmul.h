// Owns: a canonical contraction as oneDNN's matmul primitive.
// Must not: decide whether it is the best way.
#pragma once

#include "backends/cpu/contraction.h"
#include "backends/cpu/onednn/primitive.h"

namespace graphlift::cpu::onednn {

enum class WeightLayout : uint8_t {
  Plain,   // B as the spec says
  Packed,  // B as the kernel likes it: Variant::argument_desc(DNNL_ARG_WEIGHTS)
};

// Null, with the reason, where oneDNN has only reference loops or nothing.
std::unique_ptr<const Primitive> make_matmul(const ContractionSpec& spec, WeightLayout layout, std::string* why);

// B as the spec says.
MemoryDesc weight_desc(const ContractionSpec& spec);

// Calls `with(addresses)` with what a matmul primitive of `spec` needs, B replaced by `b`.
void run_matmul(const Primitive& primitive, const ContractionSpec& spec, const ContractionOperands& operands,
                const void* b);

}  // namespace graphlift::cpu::onednn
