// Owns: what is known of sizes without asking, so that no guard is recorded. A symbolic size may be 1: whether it is
// should be asked (layout.h) only where an answer depends on it. Must not: know tensors.
#pragma once

#include "ir/sym.h"

namespace graphlift::ops {

inline bool known_equal(const ir::ShapeEnv& env, const ir::Sym& a, const ir::Sym& b) {
  return a.same(b) || env.known(ir::Relation::Eq, a, b) == true;
}
inline bool known_less(const ir::ShapeEnv& env, const ir::Sym& a, const ir::Sym& b) {
  return env.known(ir::Relation::Lt, a, b) == true;
}
inline bool known_at_most(const ir::ShapeEnv& env, const ir::Sym& a, const ir::Sym& b) {
  return env.known(ir::Relation::Le, a, b) == true;
}

}  // namespace graphlift::ops
