// Owns: exits inside of inlined calls: where each frame stands, and which of them can be left in the middle and be
// entered again by their callers' own calls.
// Must not: take snapshots (snapshot.h), or enter frames (engine/).
#pragma once

#include <string>
#include <vector>

#include "base/ref.h"
#include "cpython/frame.h"
#include "ir/graph.h"

namespace graphlift::capture {

class Capture;

// The instruction that a frame executes.
struct Standing {
  cpython::Frame frame;
  int unit;            // its first unit
  int depth;           // of the stack when it began
  size_t instruction;  // Capture::instructions then
  size_t calls;        // of the graph then
};

struct Place {
  Ref code;
  int unit;
  size_t instruction;
};

// Where a region can end inside of inlined calls.
struct DepthExit {
  size_t calls = 0;           // of the graph when the root's instruction began
  std::vector<Place> places;  // where each frame stands, root first
  size_t entered = 0;         // so many of them, the root too, can be left there; 1: the root alone

  // Before which instruction the region ends: Capture::instructions.
  size_t instruction() const { return places[entered - 1].instruction; }
};

// An instruction of the innermost frame begins.
void note_standing(Capture& capture, cpython::Frame frame, int unit);
// The innermost frames that a region may end in, as they stand now.
DepthExit innermost_exit(const Capture& capture);
// An exception leaves the innermost frame: where it was raised is kept in Capture::raised.
void note_raise(Capture& capture);
// Whether the frames stand as they did when `exit` was noted.
bool stands_at(const Capture& capture, const DepthExit& exit);
// The call that a running frame executes entered the other one before anything else happened.
bool entered_at_once(cpython::Frame caller, cpython::Frame frame);
// Where the frame's stack has what its instruction calls, with the operands in place. Null: it calls nothing, or
// operands that a second call would find used up.
PyObject** called_at(cpython::Frame frame, int unit);
// Lines as they are told to users, outermost first.
std::vector<ir::SourceLine> lines_of(const std::vector<Place>& places);

}  // namespace graphlift::capture
