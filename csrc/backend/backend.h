// Owns: the interface that a backend implements, and the registry by name.
// Must not: include torch headers; tensors are passed as pointers to at::Tensor.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "base/ref.h"
#include "ir/graph.h"

namespace at {
class Tensor;
}

namespace graphlift::backend {

// How the user wants a graph to be compiled.
struct Options {
  std::string mode = "default";
  bool emulate_precision_casts = false;  // 16-bit floats are rounded after each call, as eager does
  std::vector<std::string> skip;         // names of passes and stages that don't run
  // (output, input): the output's value is copied into the input when the run is over. A backend may write it there
  // itself and hand out the input, if no call behind that can fail otherwise than by AfterWriting.
  std::vector<std::pair<int, int>> writes;
  // Inputs that are weights: a backend may keep what it makes of one as long as the same memory has the same version.
  // Empty unless the user said so: writes through `.data` or NumPy do not change a version.
  std::vector<int> weights;
  // Outputs from this one on are read by the backward alone; the others are the caller's for as long as it likes.
  size_t saved_from = SIZE_MAX;
};

// A kernel of torch's wrote to a tensor that keeps its version: what is kept of it is out of date. Any thread.
void note_silent_write(const at::Tensor& tensor);
// Who wants to know; there is one.
void on_silent_write(void (*call)(const at::Tensor& tensor));

// An error that came when inputs had been written to: the graph must not run again.
struct AfterWriting : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// An executable graph. Thread-safe: run() keeps its state on the caller's stack.
class CompiledGraph {
 public:
  virtual ~CompiledGraph() = default;
  // `inputs`: one tensor per graph input; they are moved from and released as early as possible. `outputs`: one slot
  // per graph output, undefined tensors on entry; a None output stays undefined. `symbols`: values by SymbolId. Runs
  // below autograd and needs no GIL. Throws what torch throws.
  virtual void run(at::Tensor* inputs, const int64_t* symbols, at::Tensor* outputs) const = 0;
};

// A graph of torch's functions as the program called them, run with autograd on the program's own tensors.
class CompiledCalls {
 public:
  virtual ~CompiledCalls() = default;
  // `inputs`: the primals; `outputs`: new references, one per output. Needs the GIL. False: a Python error that one of
  // the program's own calls raised is set. Throws python_error where the backend raised.
  virtual bool run(PyObject* const* inputs, const int64_t* symbols, PyObject** outputs) const = 0;
  virtual std::string text() const = 0;
  virtual size_t call_count() const = 0;
};

class Backend {
 public:
  virtual ~Backend() = default;
  virtual std::string name() const = 0;
  virtual bool supports(ir::Device device) const = 0;
  // `constants`: the tensors of "graphlift::constant" nodes by index; the result keeps those it needs.
  virtual std::unique_ptr<CompiledGraph> compile(const ir::Graph& graph, const std::vector<at::Tensor>& constants,
                                                 const Options& options) const = 0;
  // It takes the program's own calls rather than operators, where they could be written down.
  virtual bool wants_calls() const { return false; }
  virtual std::unique_ptr<CompiledCalls> compile_calls(const Ref& /*description*/) const { return nullptr; }
  // Values inside of a graph may lie otherwise than eager's.
  virtual bool chooses_layouts() const { return false; }
  virtual std::string fingerprint() const = 0;  // part of every cache key
};

// What backends made in this process.
struct Counters {
  std::atomic<uint64_t> kernels = 0;             // fused kernels in compiled graphs
  std::atomic<uint64_t> multi_kernels = 0;       // calls that run several of them
  std::atomic<uint64_t> natives = 0;             // calls that backends took themselves (contractions)
  std::atomic<uint64_t> externals = 0;           // calls that stay torch's
  std::atomic<uint64_t> in_arenas = 0;           // results whose memory is planned
  std::atomic<uint64_t> replays = 0;             // runs of a graph from a recording of its launches
  std::atomic<uint64_t> remembered_weights = 0;  // times that a kept copy of a weight was used
  std::atomic<uint64_t> remembered_bytes = 0;    // that such copies take up now
};
Counters& counters();

void register_backend(std::unique_ptr<Backend> backend);
std::shared_ptr<const Backend> find_backend(const std::string& name);  // null when unknown
std::vector<std::string> backend_names();                              // sorted

}  // namespace graphlift::backend
