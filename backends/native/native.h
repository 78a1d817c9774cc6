// Owns: the backend "native": each graph goes to the backend of its device, by one table; graphs of several devices and
// of devices without one run on "reference". Must not: compile anything itself.
#pragma once

namespace graphlift::native {

void register_native_backend();  // once; later calls do nothing

}  // namespace graphlift::native
