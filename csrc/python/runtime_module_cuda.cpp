// Owns: what tests ask of the cuda backend without a GPU.
#include <pybind11/stl.h>
#include <torch/csrc/utils/pybind.h>

#include "backend/backend.h"
#include "backends/codegen/lower_rule.h"
#include "backends/cpu/host_kernels.h"
#include "backends/cuda/cuda.h"
#include "backends/cuda/draws.h"
#include "backends/cuda/matmul.h"
#include "python/runtime_module.h"

namespace py = pybind11;

namespace graphlift::torch_layer {

void bind_cuda(py::module_& module) {
  cuda::register_cuda_backend();
  backend::register_backend(cuda::make_cuda_backend("cuda_on_cpu", 0));
  for (size_t tiling = 1; tiling <= 8; ++tiling) {
    const std::string number = std::to_string(tiling);
    backend::register_backend(cuda::make_cuda_backend("cuda_on_cpu_" + number, 0, tiling));
    backend::register_backend(cuda::make_cuda_backend("cuda_" + number, 1, tiling));
  }
  module.def(
      "cuda_texts",
      [](const std::string& graph, int device_type, int architecture, const std::vector<std::pair<int, int>>& writes) {
        return cuda::kernel_texts(*ir::parse(graph), static_cast<int8_t>(device_type), architecture, writes);
      },
      py::arg("graph"), py::arg("device_type"), py::arg("architecture"),
      py::arg("writes") = std::vector<std::pair<int, int>>());
  // A graph's numbers of the CPU as kernels: its text with them, and what it gives for tensors of the CPU.
  module.def("host_kernels", [](const std::string& text, const std::vector<at::Tensor>& given) {
    const auto graph = ir::parse(text);
    const cpu::HostKernels host(*graph, {});
    std::vector<at::Tensor> inputs = given, outputs(graph->outputs().size());
    if (!given.empty())
      reference::Program(
          host.graph(), {}, [&](const ir::Node& node) { return host.make_call(node); }, *graph)
          .run(inputs.data(), nullptr, outputs.data());
    return std::pair(ir::print(host.graph()), outputs);
  });
  module.def("lowered_operators", [] {
    std::vector<std::string> names;
    for (const codegen::LowerRow* row : codegen::all_lowerings()) names.emplace_back(row->name);
    return names;
  });
  module.def("set_draw_state", &cuda::set_draw_state);
  module.def("draw_offset", &cuda::draw_offset);
  module.def("uniform_at", &cuda::uniform_at);
  module.def("cuda_refusal", &cuda::kernel_refusal);
  module.def("kernels", [] { return backend::counters().kernels.load(); });
  module.def("library_products", &cuda::library_products);
  module.def("measurements", &cuda::measurements);
  module.def("nvrtc_refusal", [] { return cuda::compile_refusal(); });
  module.def("nvrtc_compile", [](const std::vector<std::string>& texts, int architecture) {
    std::vector<py::bytes> code;
    for (const std::string& text : cuda::compile_texts(texts, architecture)) code.emplace_back(text);
    return code;
  });
}

}  // namespace graphlift::torch_layer
