// Owns: capturing one region of a root frame: attempts, where it ends, and what it became.
// Must not: run regions (engine/), or leave the frame changed.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "capture/breaks.h"
#include "capture/callers.h"
#include "capture/capture.h"
#include "capture/recipe.h"
#include "cpython/frame.h"
#include "guards/guard.h"
#include "torch/tracer.h"

namespace graphlift::capture {

struct Request {
  cpython::Frame frame;              // real frame, at the region's first instruction
  const Callers* callers = nullptr;  // where the region may go on behind the frame's return
  Dynamic dynamic = Dynamic::Automatic;
  Seen* seen = nullptr;
  PyObject* (*wrapped_function)(PyObject* callable) = nullptr;
  Limits limits;
  bool calls = false;     // torch's functions as the program calls them are recorded, too
  bool recorded = false;  // launches on a GPU are recorded: a graph that reads a value there can't be
};

struct Captured {
  int begin_unit = 0;
  // The frames that the region went through by their return, innermost first: the returning instruction; and the
  // callers that it went on in: the call that they were in. The exit is in the last of these.
  std::vector<Place> left, callers;
  bool returns = false;
  int exit_unit = 0;  // returns: of the return instruction; else of the instruction that runs for real next
  // The exit is inside of calls that its instruction makes: where each frame stands, outermost first.
  std::vector<Place> inner;
  std::vector<Place> met;       // where the reason was met, root first; empty: not known
  std::optional<Break> reason;  // why it ends; none when it returns
  size_t instructions = 0;      // of the root, evaluated by the region. 0: nothing could be captured here
  size_t graph_calls = 0;
  bool expects = false;  // the graph may stop (expectations.h)
  std::unique_ptr<guards::GuardTree> guards;
  std::optional<torch_layer::Traced> traced;  // none: no tensor is made or changed
  Recipe recipe;
  size_t primals = 0;  // the first fetches are the executable's inputs
  std::vector<Ref> keep;
  std::vector<Evaluated> evaluated;  // for the log "bytecode"
  double seconds = 0;                // wall time of all attempts
  int attempts = 0;
};

// Captures from the frame's position. The frame is unchanged behind it. Python errors of the program never come out:
// the region ends before the instruction that raises.
Captured capture_region(const Request& request);

// The capture under way on this thread, or null.
Capture* current_capture();

}  // namespace graphlift::capture
