// Owns: what the files of the test module "graphlift_runtime" share.
#pragma once

#include <pybind11/pybind11.h>

#include <memory>
#include <vector>

#include "torch/tracer.h"

namespace graphlift::torch_layer {

// A region as tests call it.
struct Runner {
  std::unique_ptr<Executable> executable;
  size_t outputs;
  size_t shown;  // of the outputs: those that the program returned

  pybind11::list run(const pybind11::list& inputs, const std::vector<int64_t>& symbols) const;
};

// Calls `function` on stand-ins for the tensors in `inputs`, and compiles what was recorded. `function` returns a list
// of tensors. `symbolic`: per input, the dimensions that become symbols, in order s0, s1, ...
Runner record(const pybind11::function& function, const pybind11::list& inputs,
              const std::vector<std::vector<int>>& symbolic, const std::string& backend, const std::string& mode);

// Kernels for GPUs where there is none: as texts, and as the backend "cuda_on_cpu", which has tensors of the CPU and
// whatever driver the process finds.
void bind_cuda(pybind11::module_& module);

}  // namespace graphlift::torch_layer
