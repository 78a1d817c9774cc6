// Owns: variables of the root that are let go inside of a region, and with them what only they held.
// Must not: change the frame.
#pragma once

#include "cpython/frame.h"

namespace graphlift::capture {

class Capture;

// The variable gets another value or none. `touched`: it holds what capture put there. False after a break: the program
// runs something as the object dies (a `__del__`, a callback), in front of what follows; a region would do so behind.
bool let_go(Capture& capture, const cpython::Frame& root, int slot, bool touched);

}  // namespace graphlift::capture
