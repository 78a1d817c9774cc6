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
// Modes on this thread's stack that aren't ours.
int64_t foreign_modes();

}  // namespace graphlift::torch_layer
