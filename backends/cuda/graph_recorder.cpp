// Owns: see graph_recorder.h. The Python side is graphlift.cuda_graphs.
#include "backends/cuda/graph_recorder.h"

#include <c10/core/DeviceGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <torch/csrc/Exceptions.h>
#include <torch/csrc/utils/pybind.h>

#include "backends/cuda/driver.h"
#include "backends/reference/placement.h"
#include "base/gil.h"

namespace graphlift::cuda {
namespace {

namespace py = pybind11;

class Graph final : public Launches {
 public:
  explicit Graph(py::object recorded) : graph_(std::move(recorded)), replay_(graph_.attr("graph").attr("replay")) {}
  ~Graph() override {
    if (!Py_IsInitialized()) {
      graph_.release();  // the interpreter ended, and its objects with it
      replay_.release();
      return;
    }
    WithGil gil;
    replay_ = py::object();
    try {
      graph_.attr("close")();
    } catch (py::error_already_set& error) {
      error.discard_as_unraisable("a CUDA graph's end");
    }
    graph_ = py::object();
  }
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  void replay() const override {
    WithGil gil;
    if (!py::reinterpret_steal<py::object>(PyObject_CallNoArgs(replay_.ptr()))) throw python_error();
  }

  // Needs the GIL.
  py::object inner_memory() const { return graph_.attr("inner"); }

 private:
  py::object graph_, replay_;
};

// Says where memory is to come from while a program is recorded.
class Placement final : public reference::PlacementListener {
 public:
  explicit Placement(py::object place) : place_(std::move(place)) {}
  void place(bool leaving) override {
    WithGil gil;
    try {
      place_(leaving);
    } catch (py::error_already_set& error) {
      throw std::runtime_error(error.what());
    }
  }

 private:
  const py::object place_;
};

class GraphRecorder final : public Recorder {
 public:
  explicit GraphRecorder(c10::Device device) : device_(device) {}

  std::unique_ptr<Launches> record(const std::function<void()>& run, const Launches* beside) const override {
    const c10::DeviceGuard guard(device_);
    WithGil gil;
    try {
      const py::object record = py::module_::import("graphlift.cuda_graphs").attr("record");
      const py::cpp_function launch([&](py::object place) {
        Placement placement(std::move(place));
        const reference::ListenToPlacement listening(&placement);
        WithoutGil release;
        run();
      });
      const py::object memory = beside ? static_cast<const Graph*>(beside)->inner_memory() : py::none();
      return std::make_unique<Graph>(record(launch, device_.index(), memory));
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
