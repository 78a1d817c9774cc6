// Owns: which backends are built in.
#include "backends/cpu/cpu.h"
#include "backends/cuda/cuda.h"
#include "backends/native/native.h"
#include "backends/reference/reference.h"

namespace graphlift {

void register_backends() {
  reference::register_reference_backend();
  cpu::register_cpu_backend();
  cuda::register_cuda_backend();
  native::register_native_backend();
}

}  // namespace graphlift
