// Owns: see snapshot.h: the order in which an exit's parts are looked at.
#include "capture/snapshot.h"

#include "base/error.h"
#include "capture/snapshot_builder.h"

namespace graphlift::capture {
namespace {

void add_locals(SnapshotBuilder& builder, const ExitState& exit) {
  GL_CHECK(exit.live.empty() || exit.live.size() == exit.locals.size(), "liveness is by slot");
  GL_CHECK(exit.untouched.empty() || exit.untouched.size() == exit.locals.size(), "untouched is by slot");
  for (size_t i = 0; i < exit.locals.size(); ++i) {
    const bool live = exit.locals[i] && (exit.live.empty() || exit.live[i]);
    const bool kept = live && !exit.untouched.empty() && exit.untouched[i];
    builder.result.recipe.locals.push_back(kept   ? Recipe::kKeep
                                           : live ? builder.node_of(exit.locals[i])
                                                  : Recipe::kEmpty);
  }
}

}  // namespace

SnapshotResult snapshot(Capture& capture, const ExitState& exit) {
  SnapshotResult result;
  SnapshotBuilder builder(capture, &result);
  if (exit.result) result.recipe.result = builder.node_of(exit.result);
  add_locals(builder, exit);
  for (PyObject* value : exit.stack) result.recipe.stack.push_back(value ? builder.node_of(value) : Recipe::kEmpty);
  if (!builder.failed() && add_effects(builder) && builder.finish()) guard_distinct(capture);
  return result;
}

}  // namespace graphlift::capture
