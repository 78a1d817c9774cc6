// Owns: the ordered list of implementations of contractions, and when each is worth it: measured, see bench/RESULTS.md.
// Must not: implement any, or measure at run time.
#pragma once

#include <span>

#include "backends/cpu/contraction.h"

namespace graphlift::cpu {

struct ContractionImplementation {
  std::string_view name;
  // Whether it is ahead of those further down for this spec, where it can compute it at all.
  bool (*worthwhile)(const ContractionSpec& canonical);
  std::unique_ptr<const Contraction> (*make)(const ContractionSpec& canonical, std::string* why);
};

// The first that is worthwhile and can be made is taken.
std::span<const ContractionImplementation> contraction_list();

}  // namespace graphlift::cpu
