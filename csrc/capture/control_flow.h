// Owns: what stands in the place of torch.cond and torch.while_loop, while capturing and at a region's exit alike, and
// the look at branches that are not taken.
// Must not: run torch's own, which compiles in each call.
#pragma once

#include "capture/callables.h"
#include "cpython/frame.h"

namespace graphlift::capture {

// Why a region ends where a predicate is read: no fault of the program's, even where it is to be one graph.
inline constexpr const char* kControlFlowBreak = "control_flow";

// The function that stands in the callable's place where `code` calls it at `unit`: each place has one, with code and
// regions of its own. Null without an error: it is no such callable. Borrowed.
PyObject* control_flow_at(PyCodeObject* code, int unit, PyObject* callable);
// The frame is about to execute a call of such a callable: what stands in its place is called instead.
void replace_control_flow(cpython::Frame frame);

Ref rule_control_flow(Capture& capture, const CallArgs& call);
// graphlift.substitutes.sources_of_branches and is_scouted.
Ref scout_branches_call(Capture& capture, const CallArgs& call);
Ref is_scouted_call(Capture& capture, const CallArgs& call);

}  // namespace graphlift::capture
