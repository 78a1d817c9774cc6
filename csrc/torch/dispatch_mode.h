// Owns: the dispatch mode through which torch hands calls to a recorder: an interpreter vtable of ours in front of
// torch's. Must not: look at calls.
#pragma once

#include <memory>

#include "base/ref.h"

namespace graphlift::torch_layer {

class Recorder;

// The recorder behind a mode object; null once the recorder is gone. Owned by the mode object.
struct ModeLink {
  Recorder* recorder;
};

// The object that stands for the mode on torch's stack. `link` is set to its content.
Ref make_mode_object(Recorder* recorder, ModeLink** link);
void push_mode(PyObject* mode_object);
// Takes the mode off this thread's stack wherever it lies there (a program may have left one of its own above it).
void pop_mode(PyObject* mode_object);
// In scope, the innermost mode (ours, when a call of it is handled) is off this thread's stack: torch's own Python code
// must not meet it. Needs no GIL.
class ModeOff {
 public:
  ModeOff();
  ~ModeOff();
  ModeOff(const ModeOff&) = delete;
  ModeOff& operator=(const ModeOff&) = delete;

 private:
  std::shared_ptr<void> mode_;
};

// Modes on this thread's stack that aren't ours.
int64_t foreign_modes();

}  // namespace graphlift::torch_layer
