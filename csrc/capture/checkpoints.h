// Owns: torch.utils.checkpoint while capturing: what stands for its two kinds, and what may not be asked in them.
#pragma once

#include "capture/callables.h"

namespace graphlift::capture {

// torch.utils.checkpoint's own autograd.Function looks at the states of generators and runs the engine in its backward:
// graphlift's substitute is captured in its place. Null without an error: another function, or what the substitute does
// not take.
Ref reentrant_checkpoint(Capture& capture, const CallArgs& call);
// The call is one of that function, which runs the program's function again in its backward, with the random state that
// it kept: the engine in the engine.
bool keeps_random_state(const CallArgs& call);

// The function under a checkpoint with reentry runs without gradients, and with them in backward; here it is evaluated
// once. True: it is about to be told what differs between the two.
bool differs_in_backward(const Capture& capture);
Ref grad_mode_call(Capture& capture, const CallArgs& call);  // torch.is_grad_enabled()

Ref begin_checkpoint_call(Capture& capture, const CallArgs& call);
Ref end_checkpoint_call(Capture& capture, const CallArgs& call);

}  // namespace graphlift::capture
