// Owns: a region that goes on behind its frame's return, in the callers' frames, each of which stands in the middle of
// the call that entered the one before. Must not: decide where a region ends (root.cpp), or leave frames (engine/).
#pragma once

#include <vector>

#include "cpython/frame.h"

namespace graphlift::capture {

class Capture;

// The frames that a region may go on in, nearest first. As long as they are in their calls nothing of this changes.
struct Callers {
  void add(cpython::Frame frame);

  std::vector<cpython::Frame> frames;
  // Roots of kind Caller are indices into this: by frame its function, its local variables, its stack. Borrowed.
  std::vector<PyObject*> held;
  std::vector<int> begins;  // by frame: the first of these
};

// Whether control can come back to the call that the frame executes. What follows it is no longer the same then, from
// one round to the next.
bool is_in_loop(cpython::Frame caller);

// How many of the callers a region of the frame may go on in: where something acts as it dies with a frame that is left
// (cpython/death.h), it acts in front of what follows, and where one that is gone on in holds such a thing, too.
size_t quiet_levels(cpython::Frame frame, const Callers& callers);

// Caller number `level` becomes the root: the operands of its call are gone from its stack, `result` lies there, and it
// stands before the next instruction. False: what it holds could not be admitted.
bool go_on_in(Capture& capture, const Callers& callers, size_t level, PyObject* result);

}  // namespace graphlift::capture
