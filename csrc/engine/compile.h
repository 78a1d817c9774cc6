// Owns: from a capture to a region: the compile pipeline.
// Must not: touch frames.
#pragma once

#include "engine/region.h"

namespace graphlift::engine {

RegionPtr compile_region(const Config& config, capture::Captured captured);

}  // namespace graphlift::engine
