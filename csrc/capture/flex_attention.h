// Owns: what stands in the place of torch.nn.attention.flex_attention, and what indexing means in the functions of
// scores and masks that are given to it. Must not: run torch's own, which compiles in each call.
#pragma once

#include "capture/callables.h"

namespace graphlift::capture {

Ref rule_flex_attention(Capture& capture, const CallArgs& call);
// tensor[key] with tensors of one number as indices, where a function of scores or masks does it. Null without an
// error: the common meaning holds.
Ref index_by_places(Capture& capture, PyObject* tensor, PyObject* key);

}  // namespace graphlift::capture
