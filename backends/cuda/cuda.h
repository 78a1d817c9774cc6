// Owns: the backend "cuda": fused kernels in CUDA C++, torch's kernels for the rest. Must not: include torch headers.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "backend/backend.h"

namespace graphlift::cuda {

void register_cuda_backend();  // once; later calls do nothing

// Why a GPU gets no kernels; empty: it gets them. With the GIL.
std::string kernel_refusal(int device);

// For tests: the same backend for tensors of another kind of device, under another name; kernels run where the driver
// that is found says. `tiling`: which of the tilings that measuring chooses among, 0 the usual one.
std::unique_ptr<backend::Backend> make_cuda_backend(const std::string& name, int8_t device_type, size_t tiling = 0);

// For tests: how many products and kernels were measured in this process.
uint64_t measurements();

// For tests: the programs of a graph's kernels for a GPU, and whether NVRTC takes them (with the GIL).
std::vector<std::string> kernel_texts(const ir::Graph& graph, int8_t device_type, int architecture,
                                      const std::vector<std::pair<int, int>>& writes = {});
std::string compile_refusal();  // empty: there is an NVRTC
std::vector<std::string> compile_texts(const std::vector<std::string>& texts, int architecture);  // their code

}  // namespace graphlift::cuda
