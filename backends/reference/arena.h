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
  std::vector<int64_t> begins;  // per span, a multiple of 64; spans that are needed in one step lie apart
  int64_t bytes = 0;            // of all
};
ArenaPlaces place_spans(const std::vector<ArenaSpan>& spans);

// Larger results have blocks of their own, which regions share and give back: an arena is kept between runs.
inline constexpr int64_t kMostArenaBytes = int64_t{1} << 16;

// A block of CPU memory with its tensors. One run at a time uses it.
class Arena {
 public:
  // Types: of constant sizes and strides, without offset.
  Arena(const std::vector<ir::TensorType>& types, const ArenaPlaces& places);
  const at::Tensor& at(int32_t i) const { return tensors_[static_cast<size_t>(i)]; }
  // Whether nobody refers to its memory any more. Else it must not be used again; the block lives as long as they do.
  bool is_free() const;

 private:
  std::vector<at::Tensor> tensors_;
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
  explicit ArenaLease(ArenaPool* pool) : pool_(pool), arena_(pool ? pool->take() : nullptr) {}
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
