// Owns: see snapshot.h: the order in which an exit's parts are looked at.
#include "capture/snapshot.h"

#include "base/error.h"
#include "capture/snapshot_builder.h"

namespace graphlift::capture {
namespace {

// Of one that no one reads any more: an object from outside may act when it dies, a fresh one is not made at all.
int dead_local(SnapshotBuilder& builder, PyObject* value) {
  Outside* outside = builder.capture.objects.find(value);
  const bool dies = outside && outside->origin != guards::kNoOrigin && !outside->shadow;
  return dies ? builder.node_of(value) : Recipe::kEmpty;
}

void add_locals(SnapshotBuilder& builder, const ExitState& exit) {
  GL_CHECK(exit.live.empty() || exit.live.size() == exit.locals.size(), "liveness is by slot");
  GL_CHECK(exit.untouched.empty() || exit.untouched.size() == exit.locals.size(), "untouched is by slot");
  for (size_t i = 0; i < exit.locals.size(); ++i) {
    PyObject* value = exit.locals[i];
    int node = Recipe::kEmpty;
    if (value && !exit.untouched.empty() && exit.untouched[i])
      node = Recipe::kKeep;
    else if (value)
      node = exit.live.empty() || exit.live[i] ? builder.node_of(value) : dead_local(builder, value);
    builder.result.recipe.locals.push_back(node);
  }
}

void add_stack(SnapshotBuilder& builder, const std::vector<PyObject*>& stack, std::vector<int>* nodes) {
  for (PyObject* value : stack) nodes->push_back(value ? builder.node_of(value) : Recipe::kEmpty);
}

void add_inner(SnapshotBuilder& builder, const InnerExit& exit) {
  FrameRecipe frame;
  for (size_t i = 0; i < exit.locals.size(); ++i) {
    PyObject* value = exit.locals[i];
    int node = Recipe::kEmpty;
    if (value) node = exit.live.empty() || exit.live[i] ? builder.node_of(value) : dead_local(builder, value);
    frame.locals.push_back(node);
  }
  add_stack(builder, exit.stack, &frame.stack);
  builder.result.recipe.inner.push_back(std::move(frame));
}

}  // namespace

SnapshotResult snapshot(Capture& capture, const ExitState& exit) {
  SnapshotResult result;
  SnapshotBuilder builder(capture, &result);
  if (!capture.context.add_calls(builder)) builder.fail(Py_None);
  if (exit.result) result.recipe.result = builder.node_of(exit.result);
  add_locals(builder, exit);
  if (exit.handles_other) result.recipe.handled = exit.handled ? builder.node_of(exit.handled) : Recipe::kEmpty;
  add_stack(builder, exit.stack, &result.recipe.stack);
  for (const InnerExit& inner : exit.inner) add_inner(builder, inner);
  if (!builder.failed() && add_effects(builder) && builder.finish()) guard_distinct(capture);
  return result;
}

}  // namespace graphlift::capture
