// Owns: branches on a tensor's value of which one side does nothing but raise: capture goes on as if the other one were
// taken, and the graph is left for the program itself where it is not. Must not: take a side where the region would
// have done more than compute before that is known.
#pragma once

#include <optional>

#include "capture/capture.h"

namespace graphlift::capture {

// The truth of a stand-in that the branch being evaluated is taken to find, and the graph to find again. None: the
// branch has no such side, or no region here may rely on it.
std::optional<bool> expected_truth(Capture& capture, PyObject* stand_in);
// The recording relies on an expectation although it acts: false, and another attempt will rely on none.
bool may_rely(Capture& capture, const torch_layer::Traced& traced);

}  // namespace graphlift::capture
