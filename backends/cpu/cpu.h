// Owns: the backend "cpu": fused kernels by LLVM, contractions by the fastest library, torch's kernels for the rest.
// Must not: include torch headers.
#pragma once

namespace graphlift::cpu {

void register_cpu_backend();  // once; later calls do nothing

}  // namespace graphlift::cpu
