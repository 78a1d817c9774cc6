// Owns: the Python module that tests use to run a region made of graph text and plans, without a capture.
// Must not: be part of the package.
#include "python/runtime_module.h"

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include "autograd/partition.h"
#include "backend/backend.h"
#include "backends/reference/reference.h"
#include "base/error.h"
#include "torch/expectations.h"
#include "torch/objects.h"
#include "torch/runtime_bench.h"
#include "torch/seeding.h"

namespace py = pybind11;

namespace graphlift::torch_layer {
namespace {

template <class T>
void read(const py::dict& fields, const char* name, T* into) {
  if (fields.contains(name)) *into = fields[name].cast<T>();
}

Aliasing aliasing_of(const std::string& name) {
  static constexpr std::pair<const char*, Aliasing> rows[] = {{"fresh", Aliasing::Fresh},
                                                              {"input", Aliasing::Input},
                                                              {"view_of_input", Aliasing::ViewOfInput},
                                                              {"view_of_output", Aliasing::ViewOfOutput}};
  for (const auto& [row, aliasing] : rows)
    if (name == row) return aliasing;
  throw py::value_error("unknown aliasing " + name);
}

// The type of an output is that of a node in the graph, named by its position among the joint graph's outputs
// ("value"), or given for views: "like", the text of a graph with one input of that type.
OutputPlan output_plan(const py::dict& fields, const ir::Graph& joint, int* next_value) {
  OutputPlan plan;
  std::string aliasing = "fresh";
  read(fields, "aliasing", &aliasing);
  plan.aliasing = aliasing_of(aliasing);
  read(fields, "of", &plan.of);
  read(fields, "requires_grad", &plan.requires_grad);
  read(fields, "differentiable", &plan.differentiable);
  read(fields, "inference", &plan.inference);
  read(fields, "detached", &plan.detached);
  read(fields, "no_history", &plan.no_history);
  read(fields, "as_parameter", &plan.as_parameter);
  read(fields, "tangent", &plan.tangent);
  if (plan.aliasing != Aliasing::Input) {
    const ir::Arg& value = joint.outputs().at(static_cast<size_t>((*next_value)++));
    plan.type = joint.type(*value.value());
  }
  return plan;
}

InputPlan input_plan(const py::dict& fields, const ir::Node& node) {
  InputPlan plan;
  plan.type = *node.outputs.at(0);
  read(fields, "mutated", &plan.mutated_data);
  read(fields, "no_grad", &plan.mutated_under_no_grad);
  read(fields, "unversioned", &plan.unversioned);
  read(fields, "gradient", &plan.gradient);
  read(fields, "tangent", &plan.tangent);
  return plan;
}

std::unique_ptr<Executable> build(const std::string& text, const std::vector<py::dict>& inputs,
                                  const std::vector<py::dict>& outputs, const py::list& constants,
                                  const std::string& backend) {
  Traced traced;
  traced.joint = ir::parse(text);
  const auto& nodes = traced.joint->inputs();
  for (size_t i = 0; i < inputs.size(); ++i) {
    traced.inputs.push_back(input_plan(inputs[i], *nodes.at(i)));
    traced.gradients += traced.inputs.back().gradient >= 0;
  }
  traced.tangents = static_cast<int>(nodes.size() - inputs.size());
  int value = 0;
  for (const py::dict& fields : outputs) traced.outputs.push_back(output_plan(fields, *traced.joint, &value));
  for (const py::handle& constant : constants) traced.constants.push_back(Ref::borrow(constant.ptr()));
  return make_executable(std::move(traced), {backend::find_backend(backend)});
}

}  // namespace

py::list Runner::run(const py::list& inputs, const std::vector<int64_t>& symbols) const {
  std::vector<PyObject*> arguments, results(outputs, nullptr);
  for (const py::handle& input : inputs) arguments.push_back(input.ptr());
  if (executable->run(arguments.data(), symbols.data(), results.data()) != torch_layer::Ran::Done)
    throw py::error_already_set();
  py::list list;
  for (size_t i = 0; i < outputs; ++i) {
    auto result = py::reinterpret_steal<py::object>(results[i]);
    if (i < shown) list.append(result);
  }
  return list;
}

}  // namespace graphlift::torch_layer

PYBIND11_MODULE(graphlift_runtime, module) {
  using namespace graphlift;
  using torch_layer::Runner;
  reference::register_reference_backend();
  torch_layer::register_node_class();
  torch_layer::register_seeding();
  torch_layer::register_expectations();
  torch_layer::bind_cuda(module);
  py::register_exception<InternalError>(module, "InternalError");
  py::class_<Runner>(module, "Runner")
      .def("__call__", &Runner::run, py::arg("inputs"), py::arg("symbols") = std::vector<int64_t>())
      .def_property_readonly("forward_text", [](const Runner& self) { return self.executable->forward_text(); })
      .def_property_readonly("backward_text", [](const Runner& self) { return self.executable->backward_text(); })
      .def("nanoseconds", [](const Runner& self, const py::list& inputs, int times) {
        return torch_layer::nanoseconds_per_run(*self.executable, inputs.ptr(), self.outputs, times);
      });
  module.def(
      "build",
      [](const std::string& text, const std::vector<py::dict>& inputs, const std::vector<py::dict>& outputs,
         const py::list& constants, const std::string& backend) {
        return Runner{torch_layer::build(text, inputs, outputs, constants, backend), outputs.size(), outputs.size()};
      },
      py::arg("text"), py::arg("inputs"), py::arg("outputs"), py::arg("constants") = py::list(),
      py::arg("backend") = "reference");
  module.def("record", &torch_layer::record, py::arg("function"), py::arg("inputs"),
             py::arg("symbolic") = std::vector<std::vector<int>>(), py::arg("backend") = "reference",
             py::arg("mode") = "default");
  module.def("nanoseconds_of_add", [](py::handle left, py::handle right, int times, bool wrapped) {
    return torch_layer::nanoseconds_of_add(left.ptr(), right.ptr(), times, wrapped);
  });
  module.def("backend_names", &backend::backend_names);
}
