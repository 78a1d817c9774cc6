// Owns: matrices in the form that a kernel likes, remembered while the memory that they were made from is unchanged.
// Must not: keep that memory alive; believe a version counter across storages, addresses or numbers of threads.
#pragma once

#include <c10/core/StorageImpl.h>
#include <c10/util/intrusive_ptr.h>

#include <memory>
#include <mutex>
#include <vector>

#include "backends/cpu/onednn/primitive.h"

namespace at {
class Tensor;
}

namespace graphlift::cpu::onednn {

class PackedWeights {
 public:
  using Packed = std::shared_ptr<const AlignedBuffer>;
  // Null at the first sight of a version: weights that change at every step are never reordered. `plain`: how b lies.
  Packed find(const at::Tensor& owner, const void* b, const_dnnl_memory_desc_t plain, const Variant& variant) const;

 private:
  struct Entry {
    // As long as the weak reference lives no other storage has its address.
    c10::weak_intrusive_ptr<c10::StorageImpl> storage;
    const void* data;
    uint32_t version;
    const Variant* variant;
    Packed packed;
  };
  Entry* entry_of(const c10::StorageImpl* storage, const void* data, const Variant& variant) const;

  mutable std::mutex mutex_;
  mutable std::vector<Entry> entries_;  // those whose storage has died go when one is added
};

}  // namespace graphlift::cpu::onednn
