// Owns: the state of one tracer: its primals and its recorder.
// Must not: leave csrc/torch (tracer.h is the face).
#pragma once

#include <c10/core/InferenceMode.h>
#include <torch/csrc/Exceptions.h>
#include <torch/csrc/autograd/function.h>

#include <exception>
#include <functional>
#include <memory>
#include <unordered_map>
#include <vector>

#include "base/error.h"
#include "torch/recorder.h"
#include "torch/sym_node.h"
#include "torch/tensor_check.h"
#include "torch/tracer.h"

namespace graphlift::torch_layer {

// Runs `body`; what torch throws becomes the Python error that eager would raise. An InternalError passes.
template <class Body>
auto with_python_errors(Body&& body) -> decltype(body()) {
  try {
    torch::PyWarningHandler warnings;
    try {
      return body();
    } catch (...) {
      warnings.set_in_exception();
      throw;
    }
  } catch (const InternalError&) {
    throw;
  } catch (...) {
    torch::translate_exception_to_python(std::current_exception());
    return {};
  }
}

struct Primal {
  Ref object;  // the real tensor
  Ref stand_in;
  at::Tensor seen;             // the stand-in as the program sees it
  at::Tensor root;             // the leaf that gradients reach; undefined when it requires none
  std::shared_ptr<Slot> slot;  // of `seen` at first
  ir::Node* input = nullptr;
  torch::autograd::Edge edge;  // where its gradient arrives; empty when it requires none
  std::shared_ptr<PrimalFacts> facts;
  bool number = false;  // a Python float
};

// Stands where a primal's history begins outside: the stand-in of a tensor that is no leaf isn't one either, so that
// torch allows what it allows in eager.
struct OutsideHistory final : torch::autograd::Node {
  using Node::Node;
  torch::autograd::variable_list apply(torch::autograd::variable_list&& gradients) override { return gradients; }
  std::string name() const override { return "OutsideBackward"; }
};

class TracerImpl final : public Tracer {
 public:
  TracerImpl(ir::ShapeEnv* shapes, OnBreak on_break, WhereNow where, Unobserved unobserved);
  ~TracerImpl() override;

  Ref stand_in(PyObject* tensor, std::span<const int> symbolic) override;
  std::optional<int> primal_of(PyObject* stand_in) const override;
  std::unique_ptr<guards::LeafCheck> tensor_check(int primal) const override;
  Ref sym_int(const ir::Sym& value) override;
  std::optional<ir::Sym> sym_of(PyObject* sym_int) const override;
  void start() override;
  void stop() override;
  size_t call_count() const override { return recorder_.call_count(); }
  Ref frozen(PyObject* stand_in) override;
  void begin_checkpoint() override { recorder_.begin_checkpoint(); }
  void end_checkpoint() override { recorder_.end_checkpoint(); }
  void begin_scouting() override {
    if (calls_) calls_->refuse("torch.cond");
    recorder_.begin_scouting();
  }
  void end_scouting() override { recorder_.end_scouting(); }
  bool is_scouting() const override { return recorder_.is_scouting(); }
  std::vector<PyObject*> sources(std::span<PyObject* const> tensors) override;
  void begin_inference(bool mode) override { inference_modes_.push_back(std::make_unique<c10::InferenceMode>(mode)); }
  bool end_inference() override;
  bool expect(PyObject* stand_in, bool truth, bool on_cpu) override;
  void seed(PyObject* generator, int64_t seed) override;
  void record_calls(ProgramCalls::Stack stack) override;
  ProgramCalls* calls() const override { return calls_.get(); }
  Ref number_input(PyObject* number) override;
  Ref number_of(PyObject* stand_in) override;
  std::optional<int> number_primal(PyObject* number) const override;
  Ref number_tensor(PyObject* number) const override;
  bool make_generator(PyObject* generator) override;
  Ref generator_state(PyObject* generator) override;
  bool set_generator_state(PyObject* generator, PyObject* state) override;
  Ref function(NumberFunction f, PyObject* number) override;
  Ref arithmetic(Arithmetic op, PyObject* left, PyObject* right) override;
  std::optional<Decision> decide(int op, PyObject* left, PyObject* right) override;
  Reached reached(std::span<PyObject* const> roots) override;
  bool in_backward() const override { return recorder_.in_backward(); }
  std::unique_ptr<Traced> finish(std::span<PyObject* const> outputs) override;

 private:
  void note_clone(PyObject* of, PyObject* kept);
  std::shared_ptr<const GraphFloat> size_as_float(PyObject* size);
  Ref wrap_float(GraphFloat number, std::function<double()> value);
  Ref make_primal(PyObject* object, std::span<const int> symbolic);
  at::Tensor make_stand_in(const at::Tensor& real, Primal* primal);
  ir::TensorType primal_type(const at::Tensor& real, std::span<const int> symbolic);

  ir::ShapeEnv* shapes_;
  Recorder recorder_;
  std::unique_ptr<ProgramCalls> calls_;                               // null: nobody asked
  std::vector<std::unique_ptr<c10::InferenceMode>> inference_modes_;  // innermost last
  std::vector<Primal> primals_;
  std::unordered_map<PyObject*, int> by_object_;
  std::unordered_map<const c10::TensorImpl*, int> by_stand_in_;
};

}  // namespace graphlift::torch_layer
