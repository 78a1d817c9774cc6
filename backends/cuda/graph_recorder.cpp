// Owns: see graph_recorder.h. The Python side is graphlift.cuda_graphs.
#include "backends/cuda/graph_recorder.h"

#include <c10/core/DeviceGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <torch/csrc/Exceptions.h>
#include <torch/csrc/utils/pybind.h>

#include "backends/cuda/driver.h"
#include "base/gil.h"

namespace graphlift::cuda {
namespace {

namespace py = pybind11;

class Graph final : public Launches {
 public:
  explicit Graph(py::object graph) : graph_(std::move(graph)), replay_(graph_.attr("replay")) {}
  ~Graph() override {
    if (!Py_IsInitialized()) {
      graph_.release();  // the interpreter ended, and its objects with it
      replay_.release();
      return;
    }
    WithGil gil;
    replay_ = py::object();
    graph_ = py::object();
  }
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  void replay() const override {
    WithGil gil;
    if (!py::reinterpret_steal<py::object>(PyObject_CallNoArgs(replay_.ptr()))) throw python_error();
  }

 private:
  py::object graph_, replay_;
};

class GraphRecorder final : public Recorder {
 public:
  explicit GraphRecorder(c10::Device device) : device_(device) {}

  std::unique_ptr<Launches> record(const std::function<void()>& run) const override {
    const c10::DeviceGuard guard(device_);
    WithGil gil;
    try {
      const py::object record = py::module_::import("graphlift.cuda_graphs").attr("record");
      const py::cpp_function launch([&] {
        WithoutGil release;
        run();
      });
      return std::make_unique<Graph>(record(launch, device_.index()));
    } catch (py::error_already_set& error) {
      throw std::runtime_error(error.what());
    }
  }

  std::optional<const void*> queue() const override {
    void* const stream = c10::impl::VirtualGuardImpl(device_.type()).getStream(device_).native_handle();
    int capturing = 0;
    if (driver().cuStreamIsCapturing(stream, &capturing) != 0 || capturing != 0) return std::nullopt;
    return stream;
  }

  void copy(void* to, const void* from, size_t bytes) const override {
    void* const stream = c10::impl::VirtualGuardImpl(device_.type()).getStream(device_).native_handle();
    if (bytes > 0)
      check_driver(driver().cuMemcpyDtoDAsync_v2(reinterpret_cast<uint64_t>(to), reinterpret_cast<uint64_t>(from),
                                                 bytes, stream),
                   "a copy");
  }

 private:
  c10::Device device_;
};

}  // namespace

std::shared_ptr<const Recorder> make_graph_recorder(c10::Device device) {
  return std::make_shared<GraphRecorder>(device);
}

}  // namespace graphlift::cuda
