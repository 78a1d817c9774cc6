// Owns: what torch's own Python code does for the sake of torch._dynamo: decorators that hide functions from it, and
// questions whether it compiles. Programs meet them in optimizers. Must not: load torch._dynamo.
#pragma once

#include <string_view>

#include "capture/callables.h"

namespace graphlift::capture {

// Whether a function is what torch._compile's decorator makes, which only keeps another one from torch._dynamo, or what
// torch._dynamo itself put in the place of an optimizer's.
bool hides_from_dynamo(PyObject* function);
// That other one, found through the decorator's closure and guarded there. Null: error or break.
Ref hidden_from_dynamo(Capture& capture, PyObject* function);
// A note that torch._dynamo, once it was used, has each new module make for it. Without it modules are no others.
bool is_note_for_dynamo(PyObject* function);
// The module is the package, or in it.
bool is_within(std::string_view module, std::string_view package);
// The frame is code of that package.
bool is_code_of(const cpython::Frame& frame, std::string_view package);
// The innermost frame is code of that package; of torch.
bool in_module(const Capture& capture, std::string_view package);
bool in_torch(const Capture& capture);
// The innermost frame is code of torch.optim.
bool in_optimizer(const Capture& capture);
// torch.compiler.is_compiling(): optimizers must compute as they do in eager, with Python's own numbers.
Ref rule_is_compiling(Capture& capture, const CallArgs& call);

}  // namespace graphlift::capture
