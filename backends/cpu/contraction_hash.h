// Owns: what post-ops add to the hash of a spec.
#pragma once

#include <bit>

#include "backends/codegen/spec_cache.h"
#include "backends/cpu/contraction_post_op.h"

namespace graphlift::cpu {

class SpecHash : public codegen::SpecHash {
 public:
  using codegen::SpecHash::add;
  void add(const std::vector<PostOp>& post) {
    for (const PostOp& it : post) {
      for (int64_t value : {static_cast<int64_t>(it.kind), static_cast<int64_t>(it.operand.dtype),
                            static_cast<int64_t>(std::bit_cast<int32_t>(it.alpha)),
                            static_cast<int64_t>(std::bit_cast<int32_t>(it.beta))})
        add(value);
      add(it.operand.strides);
    }
  }
};

}  // namespace graphlift::cpu
