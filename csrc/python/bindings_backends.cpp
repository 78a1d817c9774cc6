// Owns: which backends there are: built in, by name, and the program's own.
#include "backends/foreign/foreign.h"
#include "backends/reference/reference.h"

namespace graphlift {

void register_backends() { reference::register_reference_backend(); }

std::shared_ptr<const backend::Backend> own_backend(PyObject* compile) {
  return foreign::make_foreign_backend(compile);
}

}  // namespace graphlift
