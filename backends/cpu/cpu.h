// Owns: the backend "cpu": fused kernels by LLVM, contractions by the fastest library, torch's kernels for the rest.
// Must not: include torch headers.
#pragma once

#include <string>

namespace graphlift::cpu {

void register_cpu_backend();  // once; later calls do nothing
// Why no kernels can be compiled here; empty: they can. With the GIL.
const std::string& kernel_refusal();

// Likewise of oneDNN's products.
std::string onednn_refusal();

}  // namespace graphlift::cpu
