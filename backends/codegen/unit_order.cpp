// Owns: see unit_order.h.
#include "backends/codegen/unit_order.h"

#include <algorithm>
#include <queue>

#include "base/error.h"

namespace graphlift::codegen {

bool UnitOrder::has(const Bits& bits, int unit) {
  const auto word = static_cast<size_t>(unit) / 64;
  return word < bits.size() && (bits[word] >> (static_cast<size_t>(unit) % 64) & 1);
}

void UnitOrder::put(Bits* bits, int unit) {
  const auto word = static_cast<size_t>(unit) / 64;
  if (word >= bits->size()) bits->resize(word + 1);
  (*bits)[word] |= uint64_t{1} << (static_cast<size_t>(unit) % 64);
}

void UnitOrder::merge(Bits* into, const Bits& from) {
  if (from.size() > into->size()) into->resize(from.size());
  for (size_t i = 0; i < from.size(); ++i) (*into)[i] |= from[i];
}

int UnitOrder::add() {
  before_.emplace_back();
  return size() - 1;
}

void UnitOrder::depend(int unit, int earlier) {
  if (unit == earlier || reaches(earlier, unit)) return;
  GL_CHECK(!reaches(unit, earlier), "two units of work wait for each other");
  Bits added = before_[static_cast<size_t>(earlier)];
  put(&added, earlier);
  for (int i = 0; i < size(); ++i)
    if (i == unit || reaches(unit, i)) merge(&before_[static_cast<size_t>(i)], added);
}

std::vector<int> UnitOrder::order() const {
  std::vector<int> missing(before_.size()), sorted;
  std::priority_queue<int, std::vector<int>, std::greater<>> ready;
  for (int i = 0; i < size(); ++i) {
    for (const uint64_t word : before_[static_cast<size_t>(i)])
      missing[static_cast<size_t>(i)] += __builtin_popcountll(word);
    if (missing[static_cast<size_t>(i)] == 0) ready.push(i);
  }
  while (!ready.empty()) {
    const int unit = ready.top();
    ready.pop();
    sorted.push_back(unit);
    for (int i = 0; i < size(); ++i)
      if (reaches(unit, i) && --missing[static_cast<size_t>(i)] == 0) ready.push(i);
  }
  GL_CHECK(sorted.size() == before_.size(), "units of work that wait for each other");
  return sorted;
}

}  // namespace graphlift::codegen
