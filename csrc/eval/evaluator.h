// Owns: evaluation of one live frame, instruction by instruction, through a Semantics. Nested Python calls are not its
// business: they are calls like any other, and reach it through the PEP 523 hook. Must not: leave or clear frames
// itself, except in finish().
//
// The state of the frame when run() or run_one() comes back. All of its references are still owned by it, and nobody
// has cleared it: whoever was handed the frame by the hook must finish it through finish() or one of cpython's leave_*
// functions.
//   Returned  `value` is the result, taken off the stack; `unit`: the returning instruction.     -> leave_by_return
//   Raised    the exception is pending and no handler of the frame covers it; no traceback entry was made for the
//   frame;
//             `unit`: the raising instruction, executing(). unit -1: the frame could not be entered (recursion).
//                                                                        -> leave_to_default(raising) or
//                                                                        leave_unwinding
//   Yielded   stands before instruction `unit`, which only the default evaluator executes (yields, return of a
//   generator
//             object, type parameters; anything, once a trace function is set); `value`: what is about to be yielded,
//             else null.                                                                              ->
//             leave_to_default
//   Stopped   stands before instruction `unit`, exactly: stack, locals, position. Running can go on there, by run() or
//   by
//             the default evaluator. After Semantics::unwinding() instead: the exception is pending, `unit` is where it
//             was raised, the content is unspecified.                                                -> leave_unwinding
#pragma once

#include <cstdint>

#include "base/ref.h"
#include "cpython/frame.h"
#include "eval/semantics.h"

namespace graphlift::eval {

enum class Exit { Returned, Raised, Yielded, Stopped };

struct Outcome {
  Exit exit;
  Ref value;
  int unit;
};

class Evaluator {
 public:
  // False: coroutines and whatever else is not evaluated here; give the frame to the default evaluator.
  static bool can_run(cpython::Frame frame);
  // Runs from the frame's position. `raising`: an exception is pending that was raised by the instruction before the
  // position (a generator's throw()).
  static Outcome run(cpython::Frame frame, Semantics& semantics, bool raising = false);
  // Executes one instruction; Semantics::before is not asked. Stopped: done, and the frame stands before the next one.
  static Outcome run_one(cpython::Frame frame, Semantics& semantics);
  // Leaves the frame as the outcome says; a stopped frame goes on in the default evaluator. For FrameHandler::evaluate.
  static PyObject* finish(cpython::Frame frame, Outcome outcome);
  // Instructions evaluated so far in this process, for tests. Guarded by the GIL.
  static uint64_t instructions();
};

}  // namespace graphlift::eval
