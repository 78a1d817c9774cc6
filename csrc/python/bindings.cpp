// Owns: the extension module graphlift._C: what the user's side calls. Bindings only.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include "backend/backend.h"
#include "base/log.h"
#include "capture/arrays.h"
#include "capture/breaks.h"
#include "capture/callables.h"
#include "capture/root.h"
#include "engine/compiled_function.h"
#include "engine/report.h"
#include "torch/tracer.h"

namespace py = pybind11;
using namespace graphlift;

namespace graphlift {
void register_backends();
void bind_backends(pybind11::module_& m);
std::shared_ptr<const backend::Backend> own_backend(PyObject* compile, bool calls);
}  // namespace graphlift

namespace {

engine::Config config_from(const py::dict& given) {
  engine::Config config;
  config.fullgraph = given["fullgraph"].cast<bool>();
  if (!given["dynamic"].is_none())
    config.dynamic = given["dynamic"].cast<bool>() ? capture::Dynamic::Always : capture::Dynamic::Never;
  const py::object backend = given["backend"];
  config.how.mode = given["mode"].cast<std::string>();
  const py::dict options = given["options"];
  config.backend = py::isinstance<py::str>(backend)
                       ? backend::find_backend(backend.cast<std::string>())
                       : own_backend(backend.ptr(), options["graph_level"].cast<std::string>() == "torch");
  config.recompile_limit = options["recompile_limit"].cast<size_t>();
  config.recompute = options["recompute"].cast<bool>();
  config.remember_weights = options["remember_weights"].cast<bool>();
  config.how.emulate_precision_casts = options["emulate_precision_casts"].cast<bool>();
  config.how.skip = options["skip_passes"].cast<std::vector<std::string>>();
  return config;
}

py::object own(Ref made) {
  if (!made) throw py::error_already_set();
  return py::reinterpret_steal<py::object>(made.release());
}

py::dict all_counters() {
  const engine::Counters& counts = engine::counters();
  const backend::Counters& made = backend::counters();
  py::dict result;
  result["graphs"] = counts.graphs;
  result["regions"] = counts.regions;
  result["graph_breaks"] = counts.graph_breaks;
  result["recompiles"] = counts.recompiles;
  result["captures"] = counts.captures;
  result["hits"] = counts.hits;
  result["frameless_hits"] = counts.frameless_hits;
  result["given_up"] = counts.given_up;
  result["internal_errors"] = counts.internal_errors;
  result["live_regions"] = counts.live_regions;
  result["kernels"] = made.kernels.load();
  result["multi_kernels"] = made.multi_kernels.load();
  result["natives"] = made.natives.load();
  result["externals"] = made.externals.load();
  result["in_arenas"] = made.in_arenas.load();
  result["replays"] = made.replays.load();
  result["remembered_weights"] = made.remembered_weights.load();
  result["remembered_bytes"] = made.remembered_bytes.load();
  py::dict breaks;
  for (const auto& [sentence, count] : engine::break_counts()) breaks[py::str(sentence)] = count;
  result["graph_break"] = breaks;
  return result;
}

}  // namespace

PYBIND11_MODULE(_C, m) {
  m.doc() = "graphlift's compiler";
  register_backends();
  torch_layer::register_fetches();
  capture::register_array_fetches();
  torch_layer::register_node_class();
  capture::prepare_tables();
  PyTypeObject* type = engine::compiled_function_type();
  if (!type) throw py::error_already_set();
  m.attr("CompiledFunction") = py::reinterpret_borrow<py::object>(reinterpret_cast<PyObject*>(type));
  m.def("compile_function", [](py::handle function, const py::dict& config) {
    return own(engine::make_compiled_function(function.ptr(), config_from(config)));
  });
  m.def("guard_seconds", [](py::handle compiled, const py::tuple& args, int batches, int count) {
    PyObject* const* items = PySequence_Fast_ITEMS(args.ptr());
    return engine::guard_seconds(compiled.ptr(), items, args.size(), batches, count);
  });
  m.def("reset", [] {
    engine::reset_all();
    engine::break_counts().clear();
  });
  m.def("graph_count", [] { return engine::counters().graphs; });
  m.def("counters", all_counters);
  m.def("meta_operators", torch_layer::meta_operators);
  m.def("set_log_sink", [](py::handle emit) { set_log_emitter(emit.is_none() ? nullptr : emit.ptr()); });
  m.def("set_logs", [](const std::string& setting) {
    reset_logs();
    const std::string wrong = set_logs(setting);
    if (!wrong.empty()) throw py::value_error(wrong);
  });
  m.def("log_table", [] {
    py::dict rows;
    for (const auto& [name, words] : log_table()) rows[py::str(name.data(), name.size())] = words;
    return rows;
  });
  m.def("backend_names", [] { return backend::backend_names(); });
  graphlift::bind_backends(m);
  m.def("explain_start", [] { engine::explain_start(); });
  m.def("explain_stop", [] { return own(engine::explain_stop()); });
  m.def("is_capturing", [] { return capture::current_capture() != nullptr; });
  m.def("graph_break", [](const std::string&) {});
  m.def("callables", [] {
    py::list paths;
    for (const capture::CallableRow* row : capture::all_callables()) paths.append(row->path);
    return paths;
  });
  m.def("unresolved_callables", [] { return capture::unresolved_callables(); });
  m.def("breaks", [] {
    py::list rows;
    for (const capture::BreakRow& row : capture::break_table())
      rows.append(py::make_tuple(row.id, row.sentence, row.hint));
    return rows;
  });
}
