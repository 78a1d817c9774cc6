// Owns: matmul of stand-ins whose sizes vary. torch's own, which is composed of other operators, asks for sizes as
// numbers in some versions (2.11), which would fix them. Must not: do anything for other tensors than stand-ins.
#pragma once

namespace graphlift::torch_layer {

// From now on, in this process, where a dispatch mode is on; later calls do nothing.
void take_varying_matmuls();

}  // namespace graphlift::torch_layer
