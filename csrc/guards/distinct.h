// Owns: "these differ from all others" as one guard: it costs as much as its members, where pairs would cost their
// square. Must not: know what the values are (addresses of memory, of objects).
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace graphlift::guards {

class Distinct {
 public:
  // `apart`: keys of the values that equal no other one. `others`: keys of values that may equal each other.
  Distinct(std::vector<int32_t> apart, const std::vector<int32_t>& others);

  const std::vector<int32_t>& keys() const { return keys_; }
  size_t apart() const { return apart_; }
  // `at(key)`: the value of a key. Allocates nothing. Remembers the values that held last, under the GIL: mostly they
  // are the same again.
  template <typename At>
  bool holds(At at) const {
    size_t changed = 0;
    for (size_t i = 0; i < keys_.size(); ++i) {
      const int64_t value = at(keys_[i]);
      if (values_[i] == value && held_) continue;
      values_[i] = value;
      if (changed < kFew) changed_[changed] = i;
      ++changed;
    }
    held_ = held_ && changed <= kFew ? few_hold(changed) : all_hold();
    return held_;
  }
  // Two keys whose values are the same. Precondition: holds() was false last.
  std::pair<int32_t, int32_t> alike() const;

 private:
  static constexpr size_t kFew = 8;

  bool few_hold(size_t count) const;
  bool all_hold() const;

  std::vector<int32_t> keys_;
  size_t apart_;
  mutable std::vector<int64_t> values_;                     // by place in keys_
  mutable std::vector<std::pair<int64_t, size_t>> sorted_;  // room for all_hold()
  mutable size_t changed_[kFew] = {};
  mutable bool held_ = false;
};

}  // namespace graphlift::guards
