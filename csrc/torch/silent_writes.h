// Owns: telling backends of torch's kernels that write to tensors without a new version (fused steps of optimizers).
// Must not: change a version: programs would see it.
#pragma once

namespace graphlift::torch_layer {

// From now on, in this process; later calls do nothing. Regions tell of their own writes themselves.
void watch_silent_writes();

}  // namespace graphlift::torch_layer
