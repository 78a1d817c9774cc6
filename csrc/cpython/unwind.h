// Owns: how a frame enters its exception handler. Must not: execute the handler.
#pragma once

#include "cpython/decode.h"
#include "cpython/frame.h"

namespace graphlift::cpython {

// The pending exception was raised by the instruction whose opcode is at `unit`. When a handler of the frame covers it:
// cuts the stack down, pushes what the handler expects (the exception, no longer pending, on top) and sets the position
// to the handler. False, and nothing changed, when the exception leaves the frame. Adds no traceback entry.
bool enter_handler(Frame frame, const Decoded& decoded, int unit);
// Drops the stack's values above `depth`.
void cut_stack(Frame frame, int depth);

}  // namespace graphlift::cpython
