// Owns: see launch.h.
#include "backends/cuda/launch.h"

#include <c10/core/impl/VirtualGuardImpl.h>

namespace graphlift::cuda {

void* Place::stream() const {
  if (!device.is_cuda()) return nullptr;
  return c10::impl::VirtualGuardImpl(device.type()).getStream(device).native_handle();
}

void Place::enter_context() const {
  void* current = nullptr;
  driver().cuCtxGetCurrent(&current);
  if (!current)
    check_driver(driver().cuCtxSetCurrent(device_facts(std::max<int>(0, device.index())).context), "a context");
}

}  // namespace graphlift::cuda
