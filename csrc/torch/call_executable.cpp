// Owns: see call_executable.h.
#include "torch/call_executable.h"

#include <ATen/ops/alias.h>
#include <torch/csrc/Exceptions.h>
#include <torch/csrc/autograd/python_variable.h>

#include <algorithm>

#include "base/error.h"
#include "ops/traits.h"
#include "torch/ambient_state.h"

namespace graphlift::torch_layer {
namespace {

class CallExecutable final : public Executable {
 public:
  CallExecutable(Traced traced, const backend::Backend& backend)
      : inputs_(traced.inputs.size()), outputs_(std::move(traced.outputs)), graph_(std::move(traced.joint)) {
    for (const InputPlan& plan : traced.inputs) repeatable_ &= !plan.mutated_data;
    for (const ir::Node& node : graph_->nodes())
      if (node.kind == ir::NodeKind::Call) {
        const ops::Effect effect = ops::traits(node.op).effect;
        repeatable_ &= effect != ops::Effect::Write && effect != ops::Effect::Random;
      }
    PyObject* calls = PyTuple_GET_ITEM(traced.calls.get(), 0);
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(calls); ++i)
      repeatable_ &= !acts_silently(PyTuple_GET_ITEM(PyList_GET_ITEM(calls, i), 0));
    given_ = static_cast<size_t>(PyList_GET_SIZE(PyTuple_GET_ITEM(traced.calls.get(), 1)));
    calls_ = backend.compile_calls(traced.calls);
    GL_CHECK(calls_ && given_ <= outputs_.size(), "calls that their backend does not take");
  }

  Ran run(PyObject* const* inputs, const int64_t* symbols, PyObject** outputs) const override {
    std::fill_n(outputs, outputs_.size(), nullptr);
    const AmbientState as_before;  // the recipe sets what the program left changed
    try {
      if (!calls_->run(inputs, symbols, outputs)) return repeatable_ ? Ran::Untouched : Ran::Failed;
    } catch (python_error& error) {
      error.restore();
      return Ran::Failed;
    }
    for (size_t i = 0; i < outputs_.size(); ++i) {
      const OutputPlan& plan = outputs_[i];
      // Bases of views that the program does not hand out: the views themselves know theirs.
      if (i >= given_) outputs[i] = Py_NewRef(Py_None);
      if (plan.aliasing == Aliasing::Input) Py_SETREF(outputs[i], Py_NewRef(inputs[plan.of]));
      if (plan.aliasing == Aliasing::Fresh && std::find(inputs, inputs + inputs_, outputs[i]) != inputs + inputs_)
        Py_SETREF(outputs[i], THPVariable_Wrap(THPVariable_Unpack(outputs[i]).alias()));  // it stays the caller's
    }
    return Ran::Done;
  }

  std::string forward_text() const override { return ir::print(*graph_); }
  std::string forward_code(const LineText&) const override { return calls_->text(); }
  std::string backward_text() const override { return ""; }
  size_t forward_calls() const override { return calls_->call_count(); }

 private:
  size_t inputs_;
  std::vector<OutputPlan> outputs_;
  std::unique_ptr<ir::Graph> graph_;
  size_t given_ = 0;
  bool repeatable_ = true;  // nothing outside was changed before an error
  std::unique_ptr<backend::CompiledCalls> calls_;
};

}  // namespace

std::unique_ptr<Executable> make_call_executable(Traced traced, const backend::Backend& backend) {
  return std::make_unique<CallExecutable>(std::move(traced), backend);
}

}  // namespace graphlift::torch_layer
