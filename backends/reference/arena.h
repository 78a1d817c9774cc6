// Owns: one block of memory for what lives and dies within a run of a program: where each result lies in it, planned
// ahead, and the tensors that lie there, made ahead. Must not: hold what leaves a program, or know what fills it.
#pragma once

#include <ATen/core/Tensor.h>

#include <atomic>
#include <memory>
#include <vector>

#include "ir/type.h"

namespace graphlift::reference {

// Bytes that are needed from step `first` to step `last`, both included.
struct ArenaSpan {
  int64_t bytes;
  int first, last;
};

struct ArenaPlaces {
  std::vector<int64_t> begins;  // per span, aligned; spans that are needed in one step lie apart
  int64_t bytes = 0;            // of all
};
ArenaPlaces place_spans(const std::vector<ArenaSpan>& spans, int64_t alignment);

// Larger results have blocks of their own, which go back when they have been read last.
inline constexpr int64_t kMostArenaBytes = int64_t{1} << 16;

// Tensors at their places in a block of memory. One run at a time uses it. On CPU the block stays from run to run;
// other memory belongs to a stream, so each run asks the device's allocator for a block.
class Arena {
 public:
  // Types: of one device, of constant sizes and strides, without offset.
  Arena(const std::vector<ir::TensorType>& types, const ArenaPlaces& places);
  const at::Tensor& at(int32_t i) const { return tensors_[static_cast<size_t>(i)]; }
  // Whether a place lies in the block.
  bool holds(const void* place) const;
  void begin_run();
  // Whether it may be used again: nobody refers to its memory any more. Else the block lives as long as they do.
  bool end_run();

 private:
  struct Block;
  std::vector<at::Tensor> tensors_;
  std::vector<int64_t> begins_;
  size_t bytes_;
  c10::Device device_;
  char* begin_ = nullptr;  // of the block, which the tensors hold; null: there is none
};

// The arenas of a program. Thread-safe.
class ArenaPool {
 public:
  ArenaPool() = default;
  ~ArenaPool();
  void plan(std::vector<ir::TensorType> types, const std::vector<ArenaSpan>& spans);
  bool empty() const { return types_.empty(); }
  // A kept one, or a new one.
  std::unique_ptr<Arena> take();
  // It is kept, unless there is something left that refers to it or as many are kept as may be.
  void give_back(std::unique_ptr<Arena> arena);

 private:
  static constexpr size_t kMostKept = 8;
  std::vector<ir::TensorType> types_;
  ArenaPlaces places_;
  std::atomic<Arena*> kept_[kMostKept] = {};
};

// Takes an arena for a run. Slots that refer to it must be gone when this is.
class ArenaLease {
 public:
  explicit ArenaLease(ArenaPool* pool) : pool_(pool), arena_(pool ? pool->take() : nullptr) {}  // may run out of memory
  ~ArenaLease() {
    if (arena_) pool_->give_back(std::move(arena_));
  }
  ArenaLease(const ArenaLease&) = delete;
  ArenaLease& operator=(const ArenaLease&) = delete;
  const Arena* arena() const { return arena_.get(); }

 private:
  ArenaPool* const pool_;
  std::unique_ptr<Arena> arena_;
};

}  // namespace graphlift::reference
