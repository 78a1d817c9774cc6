// Owns: see weight_copies.h.
#include "backends/cpu/weight_copies.h"

#include <ATen/core/Tensor.h>

#include <algorithm>
#include <cstring>

#include "backend/backend.h"

namespace graphlift::cpu {

namespace {

constexpr size_t kFewEntries = 16;

void count_use() { backend::counters().remembered_weights.fetch_add(1, std::memory_order_relaxed); }

}  // namespace

// Copies by what they were made of, for calls that look for the same one; and all calls, so that what is out of date
// goes without their being run again. Locked before a WeightCopies, never after.
class SharedCopies {
 public:
  static SharedCopies& get() {
    static auto* all = new SharedCopies;  // never destroyed: graphs may outlive static objects
    return *all;
  }

  void add(WeightCopies* calls) {
    const std::lock_guard lock(mutex_);
    calls_.push_back(calls);
  }
  void remove(WeightCopies* calls) {
    const std::lock_guard lock(mutex_);
    std::erase(calls_, calls);
  }

  // Made without the lock: two threads may make the same copy. Null: something was written silently meanwhile.
  WeightCopies::Copy find(const WeightState& state, WeightForm form, c10::function_ref<WeightCopies::Copy()> make) {
    drop_outdated();
    uint64_t before = 0;
    if (WeightCopies::Copy known = look_up(state, form, &before)) return known;
    WeightCopies::Copy made = make();
    const std::lock_guard lock(mutex_);
    if (silent_writes_ != before) return nullptr;
    known_.push_back({state, form, made});
    return made;
  }

  void drop_outdated() {
    const std::lock_guard lock(mutex_);
    for (WeightCopies* it : calls_) it->drop_outdated();
    std::erase_if(known_, [](const Known& it) { return it.copy.expired(); });
  }

  void mark_stale(const c10::StorageImpl* storage) {
    const std::lock_guard lock(mutex_);
    ++silent_writes_;
    for (const Known& it : known_)
      if (it.state.storage() == storage)
        if (const WeightCopies::Copy copy = it.copy.lock()) copy->mark_stale();
  }

 private:
  struct Known {
    WeightState state;
    WeightForm form;
    std::weak_ptr<WeightCopy> copy;
  };

  WeightCopies::Copy look_up(const WeightState& state, WeightForm form, uint64_t* silent_writes) {
    const std::lock_guard lock(mutex_);
    *silent_writes = silent_writes_;
    for (const Known& it : known_)
      if (it.form == form && it.state == state)
        if (WeightCopies::Copy copy = it.copy.lock(); copy && !copy->stale()) return copy;
    return nullptr;
  }

  SharedCopies() {
    backend::on_silent_write([](const at::Tensor& tensor) {
      if (tensor.defined() && tensor.has_storage()) get().mark_stale(tensor.storage().unsafeGetStorageImpl());
    });
  }

  std::mutex mutex_;
  std::vector<WeightCopies*> calls_;
  std::vector<Known> known_;
  uint64_t silent_writes_ = 0;
};

WeightCopy::WeightCopy(size_t bytes) : memory_(bytes) { backend::counters().remembered_bytes += memory_.size(); }
WeightCopy::~WeightCopy() { backend::counters().remembered_bytes -= memory_.size(); }

WeightState::WeightState(const at::Tensor& tensor, const void* data)
    : storage_(tensor.storage().getWeakStorageImpl()),
      counter_(tensor.unsafeGetTensorImpl()->version_counter()),
      data_(data),
      version_(counter_.current_version()) {}

// torch hands out the counter's value alone, but it is what a VariableVersion is a pointer to.
const void* WeightState::counter_of(const c10::VariableVersion& version) {
  static_assert(sizeof(c10::VariableVersion) == sizeof(void*));
  const void* address = nullptr;
  std::memcpy(&address, &version, sizeof(address));
  return address;
}

const void* WeightState::counter_of(const at::Tensor& tensor) {
  return counter_of(tensor.unsafeGetTensorImpl()->version_counter());
}

bool WeightState::is(const at::Tensor& tensor, const void* data) const {
  const c10::VariableVersion& version = tensor.unsafeGetTensorImpl()->version_counter();
  return storage() == tensor.storage().unsafeGetStorageImpl() && data_ == data && counter() == counter_of(version) &&
         version_ == version.current_version();
}

bool WeightState::operator==(const WeightState& other) const {
  return storage() == other.storage() && data_ == other.data_ && version_ == other.version_ &&
         counter() == other.counter();
}

bool WeightState::unchanged() const { return !storage_.expired() && counter_.current_version() == version_; }

WeightCopies::WeightCopies() { SharedCopies::get().add(this); }
WeightCopies::~WeightCopies() { SharedCopies::get().remove(this); }

void WeightCopies::drop_outdated() {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (lock) std::erase_if(entries_, [](const auto& it) { return !it.second.state.unchanged(); });
}

WeightCopies::Entry* WeightCopies::known(const at::Tensor& weight, const void* data) {
  const void* counter = WeightState::counter_of(weight);
  const auto found = entries_.find(counter);
  if (found == entries_.end()) {
    if (entries_.size() >= drop_at_) {
      std::erase_if(entries_, [](const auto& it) { return !it.second.state.unchanged(); });
      drop_at_ = std::max(kFewEntries, 2 * entries_.size());
    }
    entries_.try_emplace(counter, Entry{WeightState(weight, data), {}});
    return nullptr;
  }
  Entry& entry = found->second;
  if (entry.state.is(weight, data)) return &entry;
  entry = {WeightState(weight, data), {}};
  return nullptr;
}

WeightCopies::Copy WeightCopies::find(const at::Tensor& weight, const void* data, WeightForm form,
                                      c10::function_ref<Copy()> make) {
  if (!WeightState::counter_of(weight)) return nullptr;
  {
    const std::lock_guard lock(mutex_);
    Entry* entry = known(weight, data);
    if (!entry) return nullptr;
    const auto kept = std::find_if(entry->copies.begin(), entry->copies.end(),
                                   [&](const Entry::Kept& it) { return it.form == form; });
    if (kept != entry->copies.end() && !kept->copy->stale()) {
      count_use();
      return kept->copy;
    }
    if (kept != entry->copies.end()) {
      entry->copies.erase(kept);
      return nullptr;
    }
  }
  const WeightState state(weight, data);
  Copy made = SharedCopies::get().find(state, form, make);
  const std::lock_guard lock(mutex_);
  if (const auto found = entries_.find(state.counter());
      made && found != entries_.end() && found->second.state == state)
    found->second.copies.push_back({form, made});
  if (made) count_use();
  return made;
}

}  // namespace graphlift::cpu
