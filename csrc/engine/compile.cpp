// Owns: see compile.h.
#include "engine/compile.h"

#include "base/log.h"
#include "cpython/hook.h"

namespace graphlift::engine {

RegionPtr compile_region(const Config& config, capture::Captured captured) {
  cpython::HookScope nobody(nullptr);  // Python that backends run is no part of the program
  auto region = std::make_shared<Region>();
  region->begin_unit = captured.begin_unit;
  region->returns = captured.returns;
  region->exit_unit = captured.exit_unit;
  region->reason = std::move(captured.reason);
  region->graph_calls = captured.graph_calls;
  region->primals = captured.primals;
  ++counters().regions;
  ++counters().live_regions;
  if (captured.instructions == 0) {
    region->kind = Region::Kind::Empty;
    region->exit_unit = captured.begin_unit;
    return region;
  }
  region->guards = std::move(captured.guards);
  region->recipe = std::move(captured.recipe);
  if (region->returns) region->ready = capture::ready_result(region->recipe);
  if (!captured.traced) {
    if (!region->returns) region->kind = Region::Kind::Plain;
    return region;
  }
  if (config.mode != "default")
    log(Artifact::PerfHints, [&] { return "mode \"" + config.mode + "\" does what \"default\" does, so far"; });
  region->outputs = captured.traced->outputs.size();
  region->executable = torch_layer::make_executable(std::move(*captured.traced), {config.backend, config.recompute});
  ++counters().graphs;
  return region;
}

}  // namespace graphlift::engine
