// Owns: which backends are built in, and what tests ask of them.
#include <pybind11/stl.h>

#include "backends/codegen/lower_rule.h"
#include "backends/cpu/cpu.h"
#include "backends/native/native.h"
#include "backends/reference/reference.h"

namespace py = pybind11;

namespace graphlift {

// For tests: which operators kernels can compute, and why there are none here.
void bind_backends(py::module_& m) {
  m.def("lowered_operators", [] {
    std::vector<std::string> names;
    for (const codegen::LowerRow* row : codegen::all_lowerings()) names.emplace_back(row->name);
    return names;
  });
  m.def("kernel_refusal", [] { return cpu::kernel_refusal(); });
}

void register_backends() {
  reference::register_reference_backend();
  cpu::register_cpu_backend();
  native::register_native_backend();
}

}  // namespace graphlift
