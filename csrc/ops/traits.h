// Owns: what passes and the partition must know of an operator beyond its shapes: effects, and the work of running it
// again. Must not: hold numerics or shapes. An operator without a row is heavy; one of an unknown library has effects.
#pragma once

#include <cstdint>

#include "ir/graph.h"

namespace graphlift::ops {

enum class Effect : uint8_t {
  None,
  Random,  // advances a generator: never dropped, doubled, merged or moved past another one
  Write,   // writes into an argument, or acts on the world outside: stays where it is
};

enum class Work : uint8_t {
  View,    // no work: the result shares memory with argument 0, or is a constant of the graph
  Cheap,   // pointwise and copies: bound by memory
  Costly,  // pointwise with transcendental functions
  Heavy,   // contractions, reductions, gathers, and what has no row
};

struct OpTraits {
  Effect effect = Effect::None;
  Work work = Work::Heavy;
};

OpTraits traits(ir::Op op);

// Argument 0's value when the operator's result shares its memory; null otherwise, and for constants.
const ir::ValueRef* viewed_value(const ir::Node& node);
// The value whose memory `value` shares: itself unless a view made it.
ir::ValueRef memory_owner(ir::ValueRef value);

}  // namespace graphlift::ops
