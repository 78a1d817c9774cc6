// Owns: see distinct.h.
#include "guards/distinct.h"

#include <algorithm>

#include "base/error.h"

namespace graphlift::guards {

Distinct::Distinct(std::vector<int32_t> apart, const std::vector<int32_t>& others)
    : keys_(std::move(apart)), apart_(keys_.size()) {
  keys_.insert(keys_.end(), others.begin(), others.end());
  values_.resize(keys_.size());
  sorted_.resize(keys_.size());
}

bool Distinct::few_hold(size_t count) const {
  for (size_t c = 0; c < count; ++c) {
    const size_t at = changed_[c];
    const size_t end = at < apart_ ? keys_.size() : apart_;  // the others are told from `apart` only
    for (size_t i = 0; i < end; ++i)
      if (i != at && values_[i] == values_[at]) return false;
  }
  return true;
}

bool Distinct::all_hold() const {
  for (size_t i = 0; i < keys_.size(); ++i) sorted_[i] = {values_[i], i};
  std::sort(sorted_.begin(), sorted_.end());
  // Among equal values the places are in order: one that must be apart comes first.
  for (size_t i = 0; i + 1 < sorted_.size(); ++i)
    if (sorted_[i].first == sorted_[i + 1].first && sorted_[i].second < apart_) return false;
  return true;
}

std::pair<int32_t, int32_t> Distinct::alike() const {
  for (size_t i = 0; i < apart_; ++i)
    for (size_t j = 0; j < keys_.size(); ++j)
      if (i != j && values_[i] == values_[j]) return {keys_[i], keys_[j]};
  throw InternalError("no two values are alike");
}

}  // namespace graphlift::guards
