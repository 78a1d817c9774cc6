// Owns: a block of memory for kernels, 64-byte aligned. Must not: share or pool blocks.
#pragma once

#include <cstddef>
#include <memory>

namespace graphlift::cpu {

inline constexpr size_t kAlignment = 64;
constexpr size_t aligned(size_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

class AlignedBuffer {
 public:
  AlignedBuffer() = default;
  explicit AlignedBuffer(size_t bytes);  // throws std::bad_alloc
  void* data() const { return data_.get(); }
  size_t size() const { return size_; }

 private:
  struct Free {
    void operator()(void* it) const;
  };
  std::unique_ptr<void, Free> data_;
  size_t size_ = 0;
};

}  // namespace graphlift::cpu
