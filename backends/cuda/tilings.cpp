// Owns: which tilings of a kernel are worth measuring.
#include <algorithm>

#include "backends/cuda/schedule.h"

namespace graphlift::cuda {

using codegen::Kernel;

std::vector<Tiling> tilings(const Kernel& kernel, const Target& target, const Variant& variant) {
  std::vector<Tiling> found = {target.tiling};
  std::vector<Schedule> seen = {schedule_kernel(kernel, target, variant)};
  auto offer = [&](auto change) {
    Target other = target;
    change(&other.tiling);
    Schedule schedule = schedule_kernel(kernel, other, variant);
    if (std::find(seen.begin(), seen.end(), schedule) != seen.end()) return;
    seen.push_back(std::move(schedule));
    found.push_back(other.tiling);
  };
  const int fewer = std::max(1, seen.front().lanes / 2);
  for (const int threads : {128, 512, 1024, 64}) offer([&](Tiling* it) { it->threads = threads; });
  for (const int steps : {2, 8, 1}) offer([&](Tiling* it) { it->steps_per_thread = steps; });
  for (const int percent : {50, 200, 0}) offer([&](Tiling* it) { it->split_percent = percent; });
  offer([&](Tiling* it) { it->lanes = fewer; });
  offer([&](Tiling* it) { it->lanes = fewer, it->threads = 512; });
  offer([&](Tiling* it) { it->lanes = fewer, it->steps_per_thread = 8; });
  return found;
}

}  // namespace graphlift::cuda
