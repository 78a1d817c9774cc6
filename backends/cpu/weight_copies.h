// Owns: what calls keep of the weights that they read: copies in the form that a kernel likes, each believed as long as
// the weight is as it was. Equal copies are shared by all calls of the process.
// Must not: keep a weight's memory alive; believe a version across storages, addresses or counters; know who makes
// copies.
#pragma once

#include <c10/core/StorageImpl.h>
#include <c10/core/TensorImpl.h>
#include <c10/util/FunctionRef.h>
#include <c10/util/intrusive_ptr.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "backends/cpu/aligned_buffer.h"

namespace at {
class Tensor;
}

namespace graphlift::cpu {

// How a weight lies (sizes, strides, dtype) and how its copy does: equal for equal pairs in this process, never 0.
using WeightForm = uint64_t;

// The memory of one copy, counted in Counters::remembered_bytes.
class WeightCopy {
 public:
  explicit WeightCopy(size_t bytes);
  ~WeightCopy();
  WeightCopy(const WeightCopy&) = delete;
  void* data() const { return memory_.data(); }
  // The weight was written to without a new version.
  void mark_stale() { stale_.store(true, std::memory_order_release); }
  bool stale() const { return stale_.load(std::memory_order_acquire); }

 private:
  const AlignedBuffer memory_;
  std::atomic<bool> stale_{false};
};

// A weight as it was when it was looked at.
class WeightState {
 public:
  // The identity of a tensor's version counter; null: an inference tensor, which has none.
  static const void* counter_of(const at::Tensor& tensor);

  // `data`: where in its memory the weight begins.
  WeightState(const at::Tensor& tensor, const void* data);
  const void* counter() const { return counter_of(counter_); }
  const c10::StorageImpl* storage() const { return storage_._unsafe_get_target(); }
  bool is(const at::Tensor& tensor, const void* data) const;
  bool operator==(const WeightState& other) const;
  bool unchanged() const;  // its memory is there, and its counter says the same

 private:
  static const void* counter_of(const c10::VariableVersion& version);

  // While these live nobody else has their addresses.
  c10::weak_intrusive_ptr<c10::StorageImpl> storage_;
  c10::VariableVersion counter_;
  const void* data_;
  uint32_t version_;
};

// Of one call of a graph, which may meet several weights (layers that share a graph). Any thread.
class WeightCopies {
 public:
  using Copy = std::shared_ptr<WeightCopy>;
  WeightCopies();
  ~WeightCopies();
  WeightCopies(const WeightCopies&) = delete;

  // The copy, made by `make` at the second sight of a version: weights that change at every step are never copied.
  // Null: use the weight itself. Allocates nothing when there is a copy.
  Copy find(const at::Tensor& weight, const void* data, WeightForm form, c10::function_ref<Copy()> make);

 private:
  friend class SharedCopies;
  struct Entry {
    struct Kept {
      WeightForm form;
      Copy copy;
    };
    WeightState state;
    std::vector<Kept> copies;
  };
  Entry* known(const at::Tensor& weight, const void* data);  // null: from now on
  void drop_outdated();                                      // unless another thread is in here

  std::mutex mutex_;
  std::unordered_map<const void*, Entry> entries_;  // by WeightState::counter()
  size_t drop_at_ = 0;                              // so many entries: those of dead weights go before one is added
};

}  // namespace graphlift::cpu
