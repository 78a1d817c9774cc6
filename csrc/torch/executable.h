// Owns: a compiled region as it is called: the steps around the compiled graph that make its outputs equal eager's.
// Must not: record, choose what is saved (autograd/partition.h), or compute.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/util/SmallVector.h>

#include <memory>
#include <string>
#include <vector>

#include "torch/autograd_node.h"
#include "torch/code_text.h"
#include "torch/tracer.h"

namespace graphlift::torch_layer {

// Sizes, strides and offset of a view, with symbols filled in.
struct Geometry {
  c10::SmallVector<int64_t, 6> sizes, strides;
  int64_t offset = 0;
  Geometry(const ir::TensorType& type, std::span<const int64_t> symbols);
};

// `plan`'s view of `base`, as torch's view functions make it: shared memory and version, history through the base.
at::Tensor make_view(const at::Tensor& base, const OutputPlan& plan, std::span<const int64_t> symbols);
// A tensor over the same memory that is (or is not) an inference tensor.
at::Tensor as_inference(const at::Tensor& tensor, bool inference);
// New reference; null with a Python error.
PyObject* wrap_output(at::Tensor&& tensor, const OutputPlan& plan);

class RegionExecutable final : public Executable {
 public:
  RegionExecutable(Traced traced, const CompileOptions& options);
  Ran run(PyObject* const* inputs, const int64_t* symbols, PyObject** outputs) const override;
  std::string forward_text() const override { return ir::print(*forward_graph_); }
  std::string forward_code(const LineText& line_text) const override { return code_text(*forward_graph_, line_text); }
  std::string backward_text() const override { return backward_ ? ir::print(backward_->graph()) : ""; }
  size_t forward_calls() const override;

 private:
  struct Call;  // the state of one run

  // The new value of a mutated input.
  struct Mutation {
    int input;
    int slot;  // of the forward's outputs
    bool no_grad;
    bool unversioned;
    uint32_t versions;  // that eager's writes make; the last one comes with the write itself
  };
  // Where a value that backward reads comes from.
  struct SavedFrom {
    enum class Kind : uint8_t { Primal, Output, Extra };
    Kind kind;
    int index;                 // primal; plan; slot
    int version_of = -1;       // Extra: a view of this primal, whose changes in place are to be seen
    int version_of_plan = -1;  // Extra: a view of this fresh output, likewise
    bool copy = false;         // the region itself writes to the memory that it is in
  };
  // What a tangent is the gradient of.
  struct TangentOf {
    int plan = -1;
    int mutation = -1;
  };

  // What a gradient flows to: a primal, or a leaf among the outputs.
  struct GradientOf {
    int input = -1;
    int plan = -1;
  };

  void index_outputs();
  void index_gradients();
  void find_copies();
  void find_weights();
  std::vector<std::pair<int, int>> direct_writes() const;
  std::vector<int> saved_weights() const;
  void plan_saved(const std::vector<std::pair<int, int>>& saved);
  void find_version(const std::vector<int>& plan_of_slot, SavedFrom* from) const;

  void compute(Call& call) const;
  void attach_node(Call& call) const;
  void save_before_outputs(Call& call) const;
  void write_back(Call& call) const;
  void deliver(Call& call, PyObject** outputs) const;

  std::vector<InputPlan> inputs_;
  std::vector<int> number_of_input_;  // Python floats among the inputs, by input; -1: a tensor
  bool has_numbers_ = false;
  std::vector<OutputPlan> outputs_;
  std::vector<int> slot_of_plan_;  // -1: has no value of its own
  std::vector<int> copies_;  // slots whose value shares memory that must not be handed out: an input's, a constant's
  std::vector<std::pair<int, uint32_t>> versions_;  // plan, and the version that a fresh output has after its writes
  std::vector<Mutation> mutations_;
  std::vector<SavedFrom> saved_;
  std::vector<int> weights_;  // inputs that backends may keep copies of; mostly none
  std::vector<TangentOf> tangents_;
  std::vector<GradientOf> gradients_;
  std::vector<int> leaf_gradients_;  // numbers of those that flow to leaves among the outputs: mostly none
  size_t slots_ = 0;                 // outputs of the forward graph
  size_t symbol_count_ = 0;
  bool acts_outside_ = false;         // some call writes in place or acts on the world: the graph must not run twice
  bool draws_ = false;                // random numbers: the program would draw others after the graph
  std::vector<at::Device> restored_;  // whose generators are set back where an expectation fails; mostly none
  std::unique_ptr<ir::Graph> forward_graph_;
  std::unique_ptr<backend::CompiledGraph> forward_;
  std::shared_ptr<const BackwardProgram> backward_;
};

}  // namespace graphlift::torch_layer
