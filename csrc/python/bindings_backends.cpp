// Owns: which backends are built in.
#include "backends/reference/reference.h"

namespace graphlift {

void register_backends() { reference::register_reference_backend(); }

}  // namespace graphlift
