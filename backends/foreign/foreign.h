// Owns: the backend that a program brings along: a Python callable that gets each graph as a torch.fx.GraphModule.
// Must not: build the module (graphlift.foreign does, in Python), or be in the registry: each has its own callable.
#pragma once

#include <memory>

#include "backend/backend.h"
#include "base/ref.h"

namespace graphlift::foreign {

// `compile(gm, example_inputs)` is called when a graph runs for the first time, and returns what runs it from then on.
// Needs the GIL. The callable lives as long as what was compiled with it. `calls`: graphs are the program's own calls
// where they could be written down, else operators of aten.
std::shared_ptr<const backend::Backend> make_foreign_backend(PyObject* compile, bool calls);

}  // namespace graphlift::foreign
