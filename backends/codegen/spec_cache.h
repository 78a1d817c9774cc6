// Owns: what a backend made for each spec of an operation in this process, or why nothing was; the hash of specs.
// Must not: keep more than a bound, or make anything under its lock; hashes must not leave their process.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace graphlift::codegen {

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
  size_t result() const { return state_; }

 private:
  uint64_t state_ = 0xCBF29CE484222325u;
};

template <typename Spec, typename Made>
class SpecCache {
 public:
  struct Found {
    std::shared_ptr<const Made> made;
    std::string why;  // where nothing was made
  };

  // `make(spec)` gives a Found when the spec is new; two threads may make the same, one is kept.
  template <typename Make>
  std::shared_ptr<const Made> find(const Spec& spec, std::string* why, Make&& make) {
    {
      const std::shared_lock lock(mutex_);
      const auto it = known_.find(spec);
      if (it != known_.end()) return answer(it->second, why);
    }
    Found found = make(spec);
    const std::unique_lock lock(mutex_);
    // What programs use stays alive through them; the rest can be made again.
    if (known_.size() >= kMost) known_.clear();
    return answer(known_.try_emplace(spec, std::move(found)).first->second, why);
  }

 private:
  static constexpr size_t kMost = 4096;
  struct Hash {
    size_t operator()(const Spec& spec) const { return spec.hash(); }
  };
  static std::shared_ptr<const Made> answer(const Found& found, std::string* why) {
    if (why) *why = found.why;
    return found.made;
  }

  std::shared_mutex mutex_;
  std::unordered_map<Spec, Found, Hash> known_;
};

}  // namespace graphlift::codegen
