// Owns: see ways.h.
#include "guards/ways.h"

#include <algorithm>

namespace graphlift::guards {

namespace {

constexpr size_t kMostWays = 16;
constexpr size_t kMostNodes = 4096;  // of all ways together
// So many misses without a hit in between: walk plainly for a while, remembering costs more than it gives.
constexpr size_t kMissLimit = 8;
constexpr int kPause = 256;

}  // namespace

Ways::Ways(const Plan& plan)
    : limit_(std::clamp<size_t>(kMostNodes / std::max<size_t>(plan.nodes.size(), 1), 2, kMostWays)) {
  ways_.reserve(limit_);
  ways_.emplace_back(plan);
}

Outcome Ways::run(const Plan& plan, const Roots& roots, int64_t* symbols, Ref* owned, Failure* failure) {
  if (pause_ > 0) return Outcome::Miss;
  missed_ = ways_.size();
  for (size_t tried = 0; tried < ways_.size(); ++tried) {
    const size_t way = current_ + tried < ways_.size() ? current_ + tried : current_ + tried - ways_.size();
    const Outcome outcome = ways_[way].run(plan, roots, symbols, owned, failure);
    if (outcome == Outcome::OtherRoot) continue;
    if (outcome == Outcome::Miss) missed_ = way;
    if (outcome == Outcome::Hit) {
      current_ = way;
      misses_in_row_ = 0;
    }
    return outcome;
  }
  return Outcome::Miss;
}

// Where a call with roots unlike all remembered ones goes.
size_t Ways::place_for_new_root(const Plan& plan) {
  if (limit_ == 1) return 0;
  if (ways_.size() == limit_) return oldest_ = (oldest_ + 1) % limit_;
  ways_.emplace_back(plan);
  ways_.back().learn_from(ways_[current_]);
  return ways_.size() - 1;
}

PyObject* const* Ways::record(const Plan& plan, std::vector<PyObject*>* walked) {
  if (pause_ > 0) {
    --pause_;
    return walked->data();
  }
  if (++misses_in_row_ > kMissLimit + (limit_ > 1 ? 2 * limit_ : 0)) {
    misses_in_row_ = 0;
    if (limit_ == 1) pause_ = kPause;
    limit_ = 1;
    ways_.erase(ways_.begin() + 1, ways_.end());
    missed_ = current_ = 0;
  }
  const bool same_roots = missed_ < ways_.size();
  current_ = same_roots ? missed_ : place_for_new_root(plan);
  ways_[current_].record(plan, walked, same_roots || limit_ == 1);
  return ways_[current_].slots();
}

}  // namespace graphlift::guards
