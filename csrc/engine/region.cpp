// Owns: see region.h.
#include "engine/region.h"

#include <algorithm>

#include "engine/run.h"

namespace graphlift::engine {

namespace {

std::vector<Owner*>& owners() {
  static auto* all = new std::vector<Owner*>;
  return *all;
}

}  // namespace

int Region::traverse(visitproc visit, void* arg) const {
  if (guards)
    if (int status = guards->traverse(visit, arg)) return status;
  return recipe.traverse(visit, arg);
}

void UnitEntry::note_stop(const RegionPtr& region) {
  constexpr uint32_t kMost = 4;
  if (!region->expects || ++region->stops < kMost) return;
  seen.expects_nothing = true;
  std::erase(regions, region);
}

Owner::Owner(Config with) : config(std::move(with)) { owners().push_back(this); }

Owner::~Owner() {
  clear();
  std::erase(owners(), this);
}

Region::Region() { ++counters().live_regions; }
Region::~Region() { --counters().live_regions; }

CodeEntry& Owner::entry(PyCodeObject* code) {
  auto [found, added] = codes.try_emplace(code);
  if (added) held_codes.push_back(Ref::borrow(reinterpret_cast<PyObject*>(code)));
  return found->second;
}

bool Owner::is_told(const Region& region, const std::vector<capture::Place>& met) {
  if (met.empty()) return false;
  const capture::Place& at = met.back();
  const std::pair<PyObject*, int> key{at.code.get(), at.unit};
  const bool told = told_ahead_.count(key) != 0;
  bool ahead = false;
  for (size_t i = 1; i < met.size() && region.kind != Region::Kind::Graph; ++i)
    ahead |= is_captured_alone(reinterpret_cast<PyCodeObject*>(met[i].code.get()));
  if (ahead)
    told_ahead_.emplace(key, at.code);
  else
    told_ahead_.erase(key);
  return told;
}

void Owner::clear() {
  // Moved out first: dropping regions may run finalizers that call back.
  auto dropped = std::move(codes);
  auto held = std::move(held_codes);
  codes.clear();
  held_codes.clear();
  told_ahead_.clear();
}

int Owner::traverse(visitproc visit, void* arg) const {
  for (const auto& [code, entry] : codes)
    for (const auto& [unit, at] : entry.units)
      for (const RegionPtr& region : at.regions)
        if (int status = region->traverse(visit, arg)) return status;
  return 0;
}

void reset_all() {
  for (Owner* owner : std::vector<Owner*>(owners())) owner->clear();
  const uint64_t live = counters().live_regions;
  counters() = Counters{};
  counters().live_regions = live;
}

Counters& counters() {
  static Counters all;
  return all;
}

}  // namespace graphlift::engine
