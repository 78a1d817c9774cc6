// Owns: the hash of specs. Must not: leave their process.
#pragma once

#include <bit>
#include <cstdint>
#include <vector>

#include "backends/cpu/contraction_post_op.h"

namespace graphlift::cpu {

class SpecHash {
 public:
  void add(int64_t value) {
    state_ = (state_ ^ static_cast<uint64_t>(value)) * 0x9E3779B97F4A7C15u;
    state_ ^= state_ >> 29;
  }
  void add(const std::vector<int64_t>& values) {
    add(static_cast<int64_t>(values.size()));
    for (int64_t value : values) add(value);
  }
  void add(const std::vector<PostOp>& post) {
    for (const PostOp& it : post) {
      for (int64_t value : {static_cast<int64_t>(it.kind), static_cast<int64_t>(it.operand.dtype),
                            static_cast<int64_t>(std::bit_cast<int32_t>(it.alpha)),
                            static_cast<int64_t>(std::bit_cast<int32_t>(it.beta))})
        add(value);
      add(it.operand.strides);
    }
  }
  size_t result() const { return state_; }

 private:
  uint64_t state_ = 0xCBF29CE484222325u;
};

}  // namespace graphlift::cpu
