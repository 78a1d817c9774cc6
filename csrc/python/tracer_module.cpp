// Owns: the Python module that tests use to record programs without a capture, and to look at what a recording became.
// Must not: be part of the package.
#include <pybind11/complex.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include "base/error.h"
#include "torch/tracer.h"

namespace py = pybind11;

namespace graphlift::torch_layer {
namespace {

PyObject* break_class = nullptr;

// Arguments as Python sees them: values and what Python has no class for as tagged tuples.
py::object to_python(const ir::Arg& arg);

py::object sym_to_python(const ir::Sym& sym) {
  if (sym.is_constant()) return py::int_(sym.constant());
  return py::make_tuple("sym", sym.str());
}

py::list dims_to_python(const ir::Dims& dims) {
  py::list list;
  for (const ir::Sym& dim : dims) list.append(sym_to_python(dim));
  return list;
}

struct ToPython {
  py::object operator()(ir::None) const { return py::none(); }
  py::object operator()(const ir::ValueRef& v) const { return py::make_tuple("value", v.node->id, v.index); }
  py::object operator()(const ir::Sym& sym) const { return sym_to_python(sym); }
  py::object operator()(double d) const { return py::float_(d); }
  py::object operator()(bool b) const { return py::bool_(b); }
  py::object operator()(const std::complex<double>& c) const { return py::cast(c); }
  py::object operator()(const std::string& s) const { return py::str(s); }
  py::object operator()(ir::DType d) const { return py::make_tuple("dtype", std::string(ir::name(d))); }
  py::object operator()(ir::Device d) const { return py::make_tuple("device", d.str()); }
  py::object operator()(ir::Layout l) const { return py::make_tuple("layout", int(l.number)); }
  py::object operator()(ir::MemoryFormat f) const { return py::make_tuple("memory_format", int(f.number)); }
  py::object operator()(const ir::ArgList& list) const {
    py::list result;
    for (const ir::Arg& item : list) result.append(to_python(item));
    return result;
  }
};

py::object to_python(const ir::Arg& arg) { return std::visit(ToPython{}, static_cast<const ir::Arg::variant&>(arg)); }

py::dict type_to_python(const ir::TensorType& type) {
  py::dict d;
  d["dtype"] = std::string(ir::name(type.dtype));
  d["device"] = type.device.str();
  d["sizes"] = dims_to_python(type.sizes);
  d["strides"] = dims_to_python(type.strides);
  d["offset"] = sym_to_python(type.offset);
  d["requires_grad"] = type.requires_grad;
  return d;
}

py::dict node_to_python(const ir::Node& node) {
  py::dict d;
  d["id"] = node.id;
  d["input"] = node.kind == ir::NodeKind::Input ? py::object(py::str(node.input_name)) : py::none();
  d["op"] = node.kind == ir::NodeKind::Input ? py::object(py::none()) : py::str(std::string(node.op.str()));
  d["args"] = to_python(node.args);
  py::list types;
  for (const auto& type : node.outputs) types.append(type ? py::object(type_to_python(*type)) : py::none());
  d["outputs"] = types;
  d["backward"] = node.backward;
  d["recompute"] = node.must_recompute;
  return d;
}

py::dict output_to_python(const OutputPlan& plan) {
  static constexpr const char* kNames[] = {"fresh", "input", "view_of_input", "view_of_output"};
  py::dict d;
  d["aliasing"] = kNames[static_cast<int>(plan.aliasing)];
  d["of"] = plan.of;
  d["type"] = type_to_python(plan.type);
  d["requires_grad"] = plan.requires_grad;
  d["differentiable"] = plan.differentiable;
  d["inference"] = plan.inference;
  d["detached"] = plan.detached;
  d["as_parameter"] = plan.as_parameter;
  d["tangent"] = plan.tangent;
  return d;
}

py::dict input_to_python(const InputPlan& plan) {
  py::dict d;
  d["type"] = type_to_python(plan.type);
  d["mutated_data"] = plan.mutated_data;
  d["mutated_metadata"] = plan.mutated_metadata;
  d["mutated_under_no_grad"] = plan.mutated_under_no_grad;
  d["wants_gradient"] = plan.gradient >= 0;
  d["gradient"] = plan.gradient;
  d["tangent"] = plan.tangent;
  return d;
}

py::dict traced_to_python(const Traced& traced) {
  py::dict d;
  py::list nodes, inputs, outputs, results, constants, graph_inputs;
  for (const ir::Node& node : traced.joint->nodes()) nodes.append(node_to_python(node));
  for (const ir::Node* node : traced.joint->inputs()) graph_inputs.append(node->id);
  for (const InputPlan& plan : traced.inputs) inputs.append(input_to_python(plan));
  for (const OutputPlan& plan : traced.outputs) outputs.append(output_to_python(plan));
  for (const ir::Arg& arg : traced.joint->outputs()) results.append(to_python(arg));
  for (const Ref& constant : traced.constants) constants.append(py::reinterpret_borrow<py::object>(constant.get()));
  d["nodes"] = nodes;
  d["graph_inputs"] = graph_inputs;
  d["inputs"] = inputs;
  d["outputs"] = outputs;
  d["results"] = results;
  d["constants"] = constants;
  d["tangents"] = traced.tangents;
  d["gradients"] = traced.gradients;
  d["refuse"] = traced.refuse;
  d["text"] = ir::print(*traced.joint);
  d["verify"] = ir::verify(*traced.joint);
  return d;
}

py::object checked(Ref object) {
  if (!object) throw py::error_already_set();
  return py::reinterpret_steal<py::object>(object.release());
}

class Recording {
 public:
  Recording() {
    auto on_break = [](const char* kind, const std::string& detail) {
      py::object value = py::make_tuple(kind, detail);
      PyErr_SetObject(break_class, value.ptr());
    };
    tracer_ = Tracer::create(&shapes_, on_break, [] { return ir::SourceLine{}; });
  }

  py::object stand_in(py::handle tensor, std::vector<int> symbolic) {
    return checked(tracer_->stand_in(tensor.ptr(), symbolic));
  }
  py::object sym_int(int64_t hint) {
    return checked(tracer_->sym_int(shapes_.new_symbol(hint, "s" + std::to_string(shapes_.symbol_count()), 1)));
  }
  py::dict finish(const std::vector<py::object>& outputs) {
    std::vector<PyObject*> raw;
    for (const py::object& output : outputs) raw.push_back(output.ptr());
    auto traced = tracer_->finish(raw);
    if (!traced) throw py::error_already_set();
    return traced_to_python(*traced);
  }
  std::vector<std::string> guards() const {
    std::vector<std::string> result;
    for (const ir::SymGuard& guard : shapes_.guards()) result.push_back(guard.str());
    return result;
  }
  std::vector<int64_t> hints() const { return {shapes_.hints().begin(), shapes_.hints().end()}; }
  Tracer& tracer() { return *tracer_; }

 private:
  ir::ShapeEnv shapes_;
  std::unique_ptr<Tracer> tracer_;
};

class Check {
 public:
  explicit Check(std::unique_ptr<guards::LeafCheck> check) : check_(std::move(check)) {}
  py::object holds(py::object object, size_t symbols, int repeat) const {
    std::vector<int64_t> values(symbols, 0);
    bool holds = false;
    for (int i = 0; i < repeat; ++i) holds = check_->check(object.ptr(), values.data());
    if (!holds) return py::none();
    return py::cast(values);
  }
  std::string text() const { return check_->text("x"); }
  std::string explain(py::object object) const { return check_->explain(object.ptr()); }

 private:
  std::unique_ptr<guards::LeafCheck> check_;
};

}  // namespace

PYBIND11_MODULE(graphlift_tracer, m) {
  break_class = PyErr_NewException("graphlift_tracer.Break", PyExc_BaseException, nullptr);
  m.attr("Break") = py::reinterpret_borrow<py::object>(break_class);
  m.def("is_stand_in", [](py::handle object) { return is_stand_in(object.ptr()); });
  m.def("meta_operators", &meta_operators);
  m.def("ambient_check", [] { return Check(ambient_check()); });
  py::class_<Check>(m, "Check")
      .def("holds", &Check::holds, py::arg("object"), py::arg("symbols") = 8, py::arg("repeat") = 1)
      .def("text", &Check::text)
      .def("explain", &Check::explain);
  py::class_<Recording>(m, "Recording")
      .def(py::init<>())
      .def("stand_in", &Recording::stand_in, py::arg("tensor"), py::arg("symbolic") = std::vector<int>{})
      .def("sym_int", &Recording::sym_int)
      .def("start", [](Recording& r) { r.tracer().start(); })
      .def("stop", [](Recording& r) { r.tracer().stop(); })
      .def("calls", [](Recording& r) { return r.tracer().call_count(); })
      .def("primal_of", [](Recording& r, py::handle t) { return r.tracer().primal_of(t.ptr()); })
      .def("check", [](Recording& r, int primal) { return Check(r.tracer().tensor_check(primal)); })
      .def("finish", &Recording::finish)
      .def("guards", &Recording::guards)
      .def("hints", &Recording::hints);
}

}  // namespace graphlift::torch_layer
