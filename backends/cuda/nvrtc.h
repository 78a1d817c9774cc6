// Owns: compilation of CUDA C++ by NVRTC, which is found at run time beside torch. Must not: know kernels, or a GPU.
#pragma once

#include <string>
#include <vector>

namespace graphlift::cuda {

// Why nothing can be compiled here; empty: it can. Looks for the library once; with the GIL.
const std::string& nvrtc_refusal();
// Part of the key of compiled code.
std::string nvrtc_version();

struct Compilation {
  std::string text;
  int architecture;
  std::string code;   // a cubin, or PTX where NVRTC is older than the GPU
  std::string error;  // the compiler's words; empty: it went well
};

// All at once, by several threads. Needs no GIL. Precondition: nvrtc_refusal() is empty.
void compile(std::vector<Compilation>* compilations);

}  // namespace graphlift::cuda
