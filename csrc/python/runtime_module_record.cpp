// Owns: regions made by recording a Python function on stand-ins, without guards or a frame evaluator.
#include <pybind11/stl.h>

#include "backend/backend.h"
#include "base/error.h"
#include "python/runtime_module.h"

namespace py = pybind11;

namespace graphlift::torch_layer {
namespace {

std::unique_ptr<Tracer> make_tracer(ir::ShapeEnv* shapes) {
  auto on_break = [](const char* kind, const std::string& detail) {
    PyErr_SetString(PyExc_NotImplementedError, (std::string(kind) + ": " + detail).c_str());
  };
  return Tracer::create(shapes, on_break, [] { return ir::SourceLine{}; });
}

class Recording {
 public:
  explicit Recording(Tracer& tracer) : tracer_(tracer) { tracer_.start(); }
  ~Recording() { tracer_.stop(); }

 private:
  Tracer& tracer_;
};

}  // namespace

Runner record(const py::function& function, const py::list& inputs, const std::vector<std::vector<int>>& symbolic,
              const std::string& backend, const std::string& mode) {
  ir::ShapeEnv shapes;
  std::unique_ptr<Tracer> tracer = make_tracer(&shapes);
  py::list stand_ins;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const std::vector<int> none;
    Ref stand_in = tracer->stand_in(inputs[i].ptr(), i < symbolic.size() ? symbolic[i] : none);
    if (!stand_in) throw py::error_already_set();
    stand_ins.append(py::reinterpret_steal<py::object>(stand_in.release()));
  }
  py::list results;
  {
    Recording recording(*tracer);
    results = py::list(function(*stand_ins));
  }
  std::vector<PyObject*> outputs;
  for (const py::handle& result : results) outputs.push_back(result.ptr());
  std::unique_ptr<Traced> traced = tracer->finish(outputs);
  if (!traced) throw py::error_already_set();
  const size_t all = traced->outputs.size();  // bases of views that are returned without them come behind
  CompileOptions options{backend::find_backend(backend)};
  options.how.mode = mode;
  return {make_executable(std::move(*traced), options), all, outputs.size()};
}

}  // namespace graphlift::torch_layer
