// Owns: see compile.h.
#include "engine/compile.h"

#include "base/error.h"
#include "cpython/hook.h"

namespace graphlift::engine {

namespace {

// What a pass or a backend did not foresee is an internal error like any other.
std::unique_ptr<torch_layer::Executable> make_executable(const Config& config, torch_layer::Traced traced) {
  try {
    return torch_layer::make_executable(std::move(traced),
                                        {config.backend, config.recompute, config.remember_weights, config.how});
  } catch (const InternalError&) {
    throw;
  } catch (const std::exception& error) {
    if (PyErr_Occurred()) throw;
    throw InternalError(std::string("a graph could not be compiled: ") + error.what());
  }
}

}  // namespace

RegionPtr compile_region(const Config& config, capture::Captured captured) {
  cpython::HookScope nobody(nullptr);  // Python that backends run is no part of the program
  auto region = std::make_shared<Region>();
  region->begin_unit = captured.begin_unit;
  region->returns = captured.returns;
  region->exit_unit = captured.exit_unit;
  region->reason = std::move(captured.reason);
  region->graph_calls = captured.graph_calls;
  region->expects = captured.expects;
  region->primals = captured.primals;
  ++counters().regions;
  if (captured.instructions == 0) {
    region->kind = Region::Kind::Empty;
    region->exit_unit = captured.begin_unit;
    return region;
  }
  region->guards = std::move(captured.guards);
  region->recipe = std::move(captured.recipe);
  region->inner = std::move(captured.inner);
  region->left = std::move(captured.left);
  region->callers = std::move(captured.callers);
  if (region->returns) region->ready = capture::ready_result(region->recipe);
  if (!captured.traced) {
    if (!region->returns) {
      region->kind = Region::Kind::Plain;
      region->inner.clear();
    }
    return region;
  }
  region->outputs = captured.traced->outputs.size();
  region->executable = make_executable(config, std::move(*captured.traced));
  ++counters().graphs;
  return region;
}

}  // namespace graphlift::engine
