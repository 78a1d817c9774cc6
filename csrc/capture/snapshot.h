// Owns: turning the state at a region's exit into a recipe: what is outside is fetched, what is fresh is made again,
// what was changed outside becomes effects. Must not: run Python code of the user's, or change any object.
#pragma once

#include <string>
#include <vector>

#include "capture/capture.h"
#include "capture/recipe.h"

namespace graphlift::capture {

// A frame inside of the exit's instruction.
struct InnerExit {
  std::vector<PyObject*> locals, stack;
  std::vector<bool> live;
};

// Objects as the captured program sees them (stand-ins, fresh and outside objects). All borrowed.
struct ExitState {
  std::vector<PyObject*> locals;  // by slot; null: unbound
  std::vector<PyObject*> stack;   // null: CPython's NULL
  PyObject* result = nullptr;     // null: the exit is no return
  std::vector<bool> live;         // by slot; a dead slot is cleared. Empty: all are live
  std::vector<bool> untouched;    // by slot: it holds what it held before the region. Empty: none does
  std::vector<InnerExit> inner;   // of calls that the exit's instruction is in, outermost first
  PyObject* handled = nullptr;    // the exception that is being handled; null: none
  bool handles_other = false;     // another one than when the region began
};

struct SnapshotResult {
  Recipe recipe;
  std::vector<PyObject*> tensor_outputs;  // stand-ins that are outputs of the graph, each once: recipe's Tensor indices
  // Recipe's Fetched indices. The first ones are Capture::primal_origins, so that what they fetch is the executable's
  // input.
  std::vector<guards::OriginId> fetches;
  std::string unrebuildable;    // name of the type of what can't be made again; empty: the recipe is complete
  PyObject* culprit = nullptr;  // that object; lives as long as this result
  std::vector<Ref> keep;
};

// Adds guards to the capture: an outside container that is changed must not be one that was another object here.
SnapshotResult snapshot(Capture& capture, const ExitState& exit);

}  // namespace graphlift::capture
