// Owns: the face of torch towards capture/: stand-ins for tensors, recording, and what a recording became. No torch
// header is needed to include it. Must not: know frames, guards' trees or regions.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "base/ref.h"
#include "guards/guard.h"
#include "ir/graph.h"
#include "ir/sym.h"
#include "torch/program_calls.h"

namespace graphlift::torch_layer {

bool is_tensor(PyObject* object);          // torch.Tensor or a subclass (exact C check)
bool is_stand_in(PyObject* object);        // a tensor made by a Tracer, or functorch's wrapper of one
bool lie_alike(PyObject* a, PyObject* b);  // stand-ins of the same memory, laid out alike
bool is_sym_scalar(PyObject* object);      // torch.SymInt / SymFloat / SymBool
bool is_graph_float(PyObject* object);     // a torch.SymFloat of Tracer's
bool is_plain_tensor_class(
    PyObject* object);  // class is torch.Tensor, nn.Parameter or nn.Buffer's; no __torch_function__ of its own

// Called by the tracer when an operation cannot go on without data. Must set a Python exception; the tracer then
// unwinds. `kind`: id of a row in capture/breaks.def, e.g. "data_dependent_item". `detail`: e.g. the operator's name.
using OnBreak = std::function<void(const char* kind, const std::string& detail)>;
// The user's source line that is being evaluated.
using WhereNow = std::function<ir::SourceLine()>;
// Runs its argument so that Python code in it is not captured: kernels of torch's own that the program did not call.
using Unobserved = std::function<void(const std::function<void()>&)>;
using LineText = std::function<std::string(const ir::SourceLine&)>;

enum class Aliasing : uint8_t {
  Fresh,         // own memory
  Input,         // the very object `of` (a primal's index)
  ViewOfInput,   // as_strided-like view of primal `of`
  ViewOfOutput,  // view of forward output `of` (which is Fresh and not itself a view)
};

struct OutputPlan {
  Aliasing aliasing = Aliasing::Fresh;
  int of = -1;
  ir::TensorType type;          // sizes, strides and offset of the (view) output
  bool requires_grad = false;   // in eager
  bool differentiable = false;  // receives a gradient from the region's node
  bool inference = false;       // made under inference_mode
  bool detached = false;        // a view made by detach(): shares memory and version, is no view as autograd sees it
  bool no_history = false;      // a view made while grad mode was off: is_view() and no grad_fn
  bool one_of_many = false;     // a view made by an operator that gives several: writing to it is an error in eager
  bool as_parameter = false;    // class nn.Parameter
  uint32_t version = 0;         // of a fresh one: how often it was written to
  int tangent = -1;             // index among tangents
  int gradient = -1;            // of a leaf that the region made and others depend on: index among gradients
  // Not empty: it has a history that was freed or written over by the end of the region; backward raises these words.
  std::string dead_history;
};

struct InputPlan {
  ir::TensorType type;
  bool number = false;            // a Python float, in the graph a double without dimensions
  bool mutated_data = false;      // new value is written back after the forward
  bool mutated_metadata = false;  // set_/resize_/t_() ... on an input
  bool mutated_under_no_grad = false;
  bool unversioned =
      false;             // mutated without a new version: eager's kernel wrote it silently (batch norm's statistics)
  uint32_t version = 0;  // how often it was written to
  bool weight = false;   // a parameter, or kept in an object, a closure or a module: likely the same in the next call
  int gradient = -1;     // index among the joint graph's gradients; -1: it wants none, or no output depends on it
  int tangent = -1;      // of the new value of a mutated input, among tangents; -1: no gradient flows into it
};

// One finished recording. The joint graph's inputs: primals, then tangents. Its outputs: forward outputs (one per Fresh
// or view plan, as values), new values of mutated inputs in order, then gradients in order of their numbers in the
// plans.
struct Traced {
  std::unique_ptr<ir::Graph> joint;
  std::vector<InputPlan> inputs;
  std::vector<OutputPlan> outputs;
  int tangents = 0;
  int gradients = 0;
  std::vector<Ref>
      constants;      // tensors built into the graph: node "graphlift::constant" with one argument, the index here
  bool acts = false;  // generators are seeded or moved on, or the graph may stop: it runs even where no tensor is made
  // The same as calls of the program's (program_calls.h), where somebody asked; the joint graph has no backward then.
  Ref calls;
  std::string calls_refused;  // why there are none though somebody asked
  // Not empty: this recording must not be compiled; the words say why (aliased inputs are mutated, ...).
  std::string refuse;
};

enum class Arithmetic : uint8_t { Add, Sub, Mul, Div, Pow, Max, Min };  // Max, Min: Python's, of two
enum class NumberFunction : uint8_t { Sqrt, Log, Cos, Sin, Tanh };      // of Python's math

class Tracer {
 public:
  static std::unique_ptr<Tracer> create(ir::ShapeEnv* shapes, OnBreak on_break, WhereNow where,
                                        Unobserved unobserved = {});
  virtual ~Tracer() = default;

  // --- inputs --------------------------------------------------------------------------------------------------------
  // The stand-in for an outside tensor: same class, dtype, device, sizes, strides, requires_grad, is_leaf as far as
  // Python sees. Dimensions in `symbolic` become symbols. Primals are numbered in order of first call; a second call
  // with the same tensor returns the same object. Null with a Python error or after OnBreak (sparse, nested, subclass,
  // quantized...).
  virtual Ref stand_in(PyObject* tensor, std::span<const int> symbolic) = 0;
  virtual std::optional<int> primal_of(PyObject* stand_in) const = 0;
  // The check that region entry makes on the real tensor for the given primal; static dims exactly, symbolic dims
  // bound.
  virtual std::unique_ptr<guards::LeafCheck> tensor_check(int primal) const = 0;
  // An outside int that varies: a torch.SymInt object.
  virtual Ref sym_int(const ir::Sym& value) = 0;
  virtual std::optional<ir::Sym> sym_of(PyObject* sym_int) const = 0;

  // --- floats that the graph computes: torch.SymFloat objects
  // --------------------------------------------------------- An outside float that varies: the next primal.
  virtual Ref number_input(PyObject* number) = 0;
  virtual std::optional<int> number_primal(PyObject* number) const = 0;  // of such an input itself
  // The number in a floating-point stand-in on the CPU without dimensions. Null without an error: another tensor.
  virtual Ref number_of(PyObject* stand_in) = 0;
  virtual Ref number_tensor(PyObject* number) const = 0;  // its stand-in as an output; null: no such float
  // Null without an error: not among such floats and plain numbers, or Python might raise.
  virtual Ref arithmetic(Arithmetic op, PyObject* left, PyObject* right) = 0;
  virtual Ref function(NumberFunction f, PyObject* number) = 0;  // likewise, of an int that varies too
  // A comparison (Py_LT, ...) of such floats that were read from one input: what it gives now, and the check on that
  // primal that it gives the same again.
  struct Decision {
    bool holds;
    int primal;                                // -1: of no input
    std::unique_ptr<guards::LeafCheck> check;  // null then
  };
  virtual std::optional<Decision> decide(int op, PyObject* left, PyObject* right) = 0;
  // Called when a decision fixes the float that is the given primal to its value.
  std::function<void(int primal)> on_fixed;

  // --- recording -----------------------------------------------------------------------------------------------------
  // Recording is on between these, on this thread. Nestable pause: while paused, torch calls run for real.
  virtual void start() = 0;
  virtual void stop() = 0;
  virtual size_t call_count() const = 0;  // aten calls recorded so far
  // Another tensor that keeps the value which the stand-in has now, whatever is written into it later. Null without an
  // error: a tensor with a gradient or under inference, which is more than its value.
  virtual Ref frozen(PyObject* stand_in) = 0;

  // Calls between are made again by backward rather than saved: torch.utils.checkpoint. Nests.
  virtual void begin_checkpoint() = 0;
  virtual void end_checkpoint() = 0;

  // What is computed between is dropped: writing to memory from before and random draws are breaks. Nests.
  virtual void begin_scouting() = 0;
  virtual void end_scouting() = 0;
  virtual bool is_scouting() const = 0;
  // Tensors that require gradients, from outside or leaves made here, which these were computed from; borrowed.
  virtual std::vector<PyObject*> sources(std::span<PyObject* const> tensors) = 0;

  // Tensors made from now on are inference tensors, or not; until the end of the innermost of these. What is open when
  // the recording ends must be closed before.
  virtual void begin_inference(bool mode) = 0;
  virtual bool end_inference() = 0;  // false: none is open

  // The graph stops where the truth of a stand-in of one element is another (expectations.h). False: it has more, or
  // is not on the CPU where it must be.
  virtual bool expect(PyObject* stand_in, bool truth, bool on_cpu) = 0;

  // A generator from outside is seeded (null: all default ones, as torch.manual_seed does).
  virtual void seed(PyObject* generator, int64_t seed) = 0;
  // The program makes a generator. False without an error: not on the CPU, as for its state.
  virtual bool make_generator(PyObject* generator) = 0;
  virtual Ref generator_state(PyObject* generator) = 0;
  virtual bool set_generator_state(PyObject* generator, PyObject* state) = 0;
  // Records calls as the program makes them as well; before start().
  virtual void record_calls(ProgramCalls::Stack stack) = 0;
  virtual ProgramCalls* calls() const = 0;  // null: nobody asked

  // --- the program's own backward ------------------------------------------------------------------------------------
  // What a run of the autograd engine from these stand-ins reaches. To be asked before each run; the run itself is a
  // call of torch's like any other.
  struct Reached {
    std::vector<PyObject*> leaves;  // stand-ins of primals into which gradients would be accumulated; borrowed
    std::string refuse;             // not empty: words for gradients that can't be followed
  };
  virtual Reached reached(std::span<PyObject* const> roots) = 0;
  virtual bool in_backward() const = 0;  // finish() runs the engine: the gradients are the region's own business

  // --- the end -------------------------------------------------------------------------------------------------------
  // Ends the recording with these stand-ins (or fresh tensors) as outputs, runs the autograd engine on stand-ins for
  // the differentiable ones and returns the joint graph. Null with a Python error set.
  virtual std::unique_ptr<Traced> finish(std::span<PyObject* const> outputs) = 0;
};

// .grad without a warning: a new reference, None when there is none.
Ref gradient_of(PyObject* tensor);

// The pending Python error was raised because torch's own code wanted a stand-in's data, outside of any operator that
// the recorder sees (a cuDNN LSTM's weights, numpy(), data_ptr()): a graph break for who captures. False: none, or
// another error.
bool data_was_needed();

// Operators of this process's recordings that had no shape rule of ours or of torch's in C++: slow to record. For
// reports.
std::vector<std::string> meta_operators();

// A check of the ambient state that steered the recording (grad mode, inference mode, autocast, default dtype and
// device, deterministic flags, functorch and torch-function state), as it is now.
std::unique_ptr<guards::LeafCheck> ambient_check();

// How a run ended. Failed and Untouched: a Python error is set. Untouched: it came before anything of the program was
// changed, so that the program itself can run in its place and meet the error where it belongs.
enum class Ran : uint8_t { Done, Failed, Untouched };

// A compiled region's tensor part: forward, and backward as one autograd node.
class Executable {
 public:
  virtual ~Executable() = default;
  // `inputs`: the primals (borrowed). `symbols`: values by SymbolId. `outputs`: new references, one per OutputPlan.
  virtual Ran run(PyObject* const* inputs, const int64_t* symbols, PyObject** outputs) const = 0;
  virtual std::string forward_text() const = 0;  // graph text, for logs and explain
  // The same as Python code that runs; the text of the user's lines comes from `line_text`.
  virtual std::string forward_code(const LineText& line_text) const = 0;
  virtual std::string backward_text() const = 0;  // empty when there is none
  virtual size_t forward_calls() const = 0;
};

// How a recording becomes an Executable.
struct CompileOptions {
  std::shared_ptr<const backend::Backend> backend;
  bool recompute = true;          // backward may compute again what is cheap instead of saving it
  bool remember_weights = false;  // those of InputPlan::weight
  backend::Options how = {};
};

// Throws InternalError on a graph that the backend can't take.
std::unique_ptr<Executable> make_executable(Traced traced, const CompileOptions& options);

}  // namespace graphlift::torch_layer
