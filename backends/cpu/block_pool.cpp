// Owns: see block_pool.h.
#include "backends/cpu/block_pool.h"

#include <c10/core/impl/alloc_cpu.h>
#include <sys/mman.h>

#include <cstdlib>
#include <map>
#include <mutex>
#include <unordered_map>

namespace graphlift::cpu {
namespace {

// Of large blocks the system may make huge pages: fewer faults, and fewer entries of the processor's tables. Where
// there is no memory, the error is torch's.
void* fresh(size_t bytes) {
  constexpr size_t kHugePage = size_t{1} << 21;
  void* block = nullptr;
  if (bytes < kHugePage || posix_memalign(&block, kHugePage, bytes) != 0) return c10::alloc_cpu(bytes);
  madvise(block, bytes / kHugePage * kHugePage, MADV_HUGEPAGE);  // what is left behind the last one would be waste
  return block;
}

class BlockPool final : public c10::Allocator {
 public:
  // The smallest kept block that fits and wastes less than a quarter, else a new one.
  c10::DataPtr allocate(size_t bytes) override {
    {
      std::lock_guard lock(mutex_);
      auto found = kept_.lower_bound(bytes);
      if (found != kept_.end() && found->first - bytes <= bytes / 4) {
        const auto [size, block] = *found;
        kept_.erase(found);
        kept_bytes_ -= size;
        return in_use(block, size);
      }
    }
    void* block = fresh(bytes);
    std::lock_guard lock(mutex_);
    return in_use(block, bytes);
  }

  c10::DeleterFnPtr raw_deleter() const override { return &release; }
  void copy_data(void* to, const void* from, size_t bytes) const override { default_copy_data(to, from, bytes); }

  void empty() {
    std::lock_guard lock(mutex_);
    for (const auto& [size, block] : kept_) c10::free_cpu(block);
    kept_.clear();
    kept_bytes_ = 0;
  }

 private:
  c10::DataPtr in_use(void* block, size_t size) {
    sizes_[block] = size;
    used_bytes_ += size;
    most_used_ = std::max(most_used_, used_bytes_);
    trim();
    return {block, block, &release, c10::Device(c10::DeviceType::CPU)};
  }

  static void release(void* block);

  void keep(void* block) {
    std::lock_guard lock(mutex_);
    const auto found = sizes_.find(block);
    const size_t size = found->second;
    sizes_.erase(found);
    used_bytes_ -= size;
    kept_.emplace(size, block);
    kept_bytes_ += size;
    trim();
  }

  // The largest go first: they stand for the most.
  void trim() {
    while (!kept_.empty() && used_bytes_ + kept_bytes_ > most_used_) {
      const auto last = std::prev(kept_.end());
      kept_bytes_ -= last->first;
      c10::free_cpu(last->second);
      kept_.erase(last);
    }
  }

  std::mutex mutex_;
  std::multimap<size_t, void*> kept_;
  std::unordered_map<void*, size_t> sizes_;  // of blocks in use
  size_t used_bytes_ = 0, kept_bytes_ = 0, most_used_ = 0;
};

// Never destroyed: tensors may outlive static objects.
BlockPool& pool() {
  static auto* pool = new BlockPool;
  return *pool;
}

void BlockPool::release(void* block) { pool().keep(block); }

}  // namespace

c10::Allocator* block_pool() { return &pool(); }

void empty_block_pool() { pool().empty(); }

}  // namespace graphlift::cpu
