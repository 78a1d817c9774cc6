// Owns: which backends there are: built in, by name, and the program's own; and what tests ask of them.
#include <pybind11/stl.h>

#include "backends/codegen/fuse.h"
#include "backends/codegen/lower_rule.h"
#include "backends/cpu/cpu.h"
#include "backends/cpu/tuning.h"
#include "backends/cuda/cuda.h"
#include "backends/cuda/matmul.h"
#include "backends/foreign/foreign.h"
#include "backends/native/native.h"
#include "backends/reference/reference.h"
#include "passes/pass.h"

namespace py = pybind11;

namespace graphlift {

// For tests: which operators kernels can compute, and why there are none here.
void bind_backends(py::module_& m) {
  m.def("lowered_operators", [] {
    std::vector<std::string> names;
    for (const codegen::LowerRow* row : codegen::all_lowerings()) names.emplace_back(row->name);
    return names;
  });
  // What can be left out: passes over graphs, then the stages of fusion; each with what it does.
  m.def("passes", [] {
    py::dict rows;
    auto add = [&](std::string_view name, std::string_view sentence) { rows[py::str(std::string(name))] = sentence; };
    for (const passes::Pass& pass : passes::all_passes()) add(pass.name, pass.sentence);
    for (const codegen::Stage& stage : codegen::all_stages()) add(stage.name, stage.sentence);
    return rows;
  });
  m.def("tunings", [] { return cpu::tunings() + cuda::measurements(); });
  m.def("library_products", &cuda::library_products);
  m.def("onednn_refusal", [] { return cpu::onednn_refusal(); });
  m.def("kernel_refusal", [] { return cpu::kernel_refusal(); });
}

void register_backends() {
  reference::register_reference_backend();
  cpu::register_cpu_backend();
  cuda::register_cuda_backend();
  native::register_native_backend();
}

std::shared_ptr<const backend::Backend> own_backend(PyObject* compile, bool calls) {
  return foreign::make_foreign_backend(compile, calls);
}

}  // namespace graphlift
