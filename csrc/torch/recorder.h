// Owns: recording of aten calls. A dispatch mode below autograd sends every call here; mutation and views become pure
// calls (aliases.cpp), types come from ops/ rules or torch's own shape functions (infer.cpp), odd operators have rows
// of their own (special_ops.cpp). Must not: know inputs' plans or outputs (tracer.cpp, finish.cpp).
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

#include <memory>
#include <string>
#include <unordered_set>
#include <vector>

#include "base/error.h"
#include "base/ref.h"
#include "ir/graph.h"
#include "ir/sym.h"
#include "torch/dispatch_mode.h"
#include "torch/fake.h"
#include "torch/op_info.h"
#include "torch/tracer.h"

namespace graphlift::torch_layer {

using Types = std::vector<std::optional<ir::TensorType>>;

// Excluded, calls on this thread don't reach the recorder.
inline constexpr c10::DispatchKeySet kPythonKeys({c10::DispatchKey::Python, c10::DispatchKey::PythonTLSSnapshot});

class Recorder {
 public:
  Recorder(ir::ShapeEnv* shapes, OnBreak on_break, WhereNow where, Unobserved unobserved = {});
  ~Recorder();
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

  // Pushes and pops the mode on this thread.
  void start();
  void stop();
  bool recording() const { return depth_ > 0; }
  // An InternalError inside of a call reaches the program as a RuntimeError, for torch makes it one. It is kept, and
  // thrown again here.
  void rethrow_failure() const {
    if (!failure_.empty()) throw InternalError(failure_);
  }
  void call(const c10::OperatorHandle& handle, torch::jit::Stack& stack);
  // Called with the GIL for each call that is not the engine's own.
  std::function<void(const c10::OperatorHandle&)> on_call;
  // The autograd engine runs for finish(): calls from now on belong to the backward.
  void set_backward(bool on) { backward_ = on; }
  bool in_backward() const { return backward_; }
  // Calls between belong to a checkpoint of the program's. Nests.
  void begin_checkpoint() { checkpoints_.push_back(++last_checkpoint_); }
  void end_checkpoint() {
    if (!checkpoints_.empty()) checkpoints_.pop_back();
  }
  // What is computed between is dropped. Nests.
  void begin_scouting() { scouted_.push_back(FakeStorage::last_born()); }
  void end_scouting() { scouted_.pop_back(); }
  bool is_scouting() const { return !scouted_.empty(); }
  // The program runs the engine.
  void note_engine() { engine_ran_ |= !backward_; }

  ir::Graph& graph() { return *graph_; }
  std::unique_ptr<ir::Graph> take_graph() { return std::move(graph_); }
  ir::ShapeEnv& shapes() { return *shapes_; }
  uint64_t serial() const { return serial_; }
  size_t call_count() const { return calls_; }
  std::vector<at::Tensor>& constants() { return constants_; }
  // The program ran the autograd engine itself.
  bool engine_ran() const { return engine_ran_; }
  void record_expectation(ir::ValueRef value, bool truth);
  // The program seeds a generator; None: all default ones.
  void record_seed(ir::Arg generator, int64_t seed);
  // The program made a generator on the CPU. It lives as long as the recording.
  void note_generator(const at::Generator& generator);
  ir::Arg generator_name(const at::Generator& generator) const;
  at::Tensor record_state(const at::Generator& generator);
  void record_set_state(const at::Generator& generator, const at::Tensor& state);
  // A call that nothing uses: it moves a generator on, or may stop the graph.
  bool must_stay(const ir::Node* node) const { return kept_.contains(node); }
  bool acts() const { return !kept_.empty(); }
  // Primals whose memory was seen by absolute offsets.
  const std::unordered_set<int>& seen_by_offset() const { return seen_by_offset_; }

  // --- values --------------------------------------------------------------------------------------------------------
  // The slot of a stand-in, whatever TensorImpl it is. Breaks on one of another recording. Precondition:
  // fake_storage(tensor).
  std::shared_ptr<Slot> slot_of(const at::Tensor& tensor);
  // Content of a stand-in now.
  ir::ValueRef value_of(const at::Tensor& tensor);
  // As an argument of a call: numbers that torch wrapped into tensors become numbers again, real tensors constants.
  ir::Arg tensor_argument(const at::Tensor& tensor);
  ir::Arg argument(const c10::IValue& value, const c10::Type& type);
  // The stand-in for a real tensor that is built into the graph.
  at::Tensor lift_constant(const at::Tensor& tensor);
  // For a number that torch wrapped into a tensor, where the operator wants a tensor.
  at::Tensor lift_number(const at::Tensor& number);
  at::Tensor new_tensor(const ir::TensorType& type, ir::ValueRef value);
  ir::Node* add_call(ir::Op op, ir::ArgList args, Types types);
  ir::ValueRef draw_in_memory_order(const c10::OperatorHandle& functional, torch::jit::Stack& arguments,
                                    const std::vector<int64_t>& order);
  ir::ValueRef add_simple(std::string_view op, ir::ArgList args, ir::TensorType type);

  // --- calls ---------------------------------------------------------------------------------------------------------
  // Types of the results, one entry per tensor, and the results that are ints. `args` as converted; `stack` holds the
  // call's arguments as torch gave them.
  struct Results {
    Types types;
    std::vector<ir::Sym> ints;
  };
  Results infer(const c10::OperatorHandle& handle, const OpInfo& info, const ir::ArgList& args,
                c10::ArrayRef<c10::IValue> stack);
  ir::Node* record(const c10::OperatorHandle& handle, const OpInfo& info, c10::ArrayRef<c10::IValue> stack);
  void pure(const c10::OperatorHandle& handle, const OpInfo& info, torch::jit::Stack& stack);
  // An operator that answers with numbers: it runs on the stand-ins themselves, and needs data if that fails.
  void ask(const c10::OperatorHandle& handle, torch::jit::Stack& stack);
  void view(const c10::OperatorHandle& handle, const OpInfo& info, torch::jit::Stack& stack);
  void mutate(const c10::OperatorHandle& handle, const OpInfo& info, torch::jit::Stack& stack);
  // Makes `value` the content of the tensor; its dtype and shape are brought to the tensor's as an in-place operator
  // does.
  void write(const at::Tensor& tensor, ir::ValueRef value);
  // Runs the operator's composition with recording on.
  void each(const c10::OperatorHandle& handle, torch::jit::Stack& stack);
  void decompose(const c10::OperatorHandle& handle, torch::jit::Stack& stack, c10::DispatchKey composition);
  void refuse_unknown(const c10::OperatorHandle& handle, const OpInfo& info);
  [[noreturn]] void break_for_fake(const std::string& op, const std::string& words);
  // Pops the arguments and pushes stand-ins for a node's results, in the structure of the schema's returns.
  void push_results(const c10::FunctionSchema& schema, ir::Node* node, torch::jit::Stack& stack);

  // A kernel of torch's or of a library for meta tensors, Python mostly: not recorded, not captured.
  void call_kernel_for_meta(const c10::OperatorHandle& handle, torch::jit::Stack& stack);
  // A graph break: sets the Python error and throws.
  [[noreturn]] void break_now(const char* kind, const std::string& detail);

 private:
  friend class Probe;
  void dispatch(const c10::OperatorHandle& handle, const OpInfo& info, torch::jit::Stack& stack);
  void keep_random(ir::Node* node);
  void refuse_scouted_write(const at::Tensor& tensor);
  void change_view(const c10::OperatorHandle& handle, const OpInfo& info, torch::jit::Stack& stack);
  void refresh(Slot& slot, FakeStorage& storage);
  bool grows(const at::Tensor& target, ir::ValueRef value, bool structured);
  ir::ValueRef scatter(const Slot& slot, ir::ValueRef parent, ir::ValueRef value);
  ir::ValueRef fit(const ir::TensorType& target, ir::ValueRef old, ir::ValueRef value);
  Results infer_by_torch(const c10::OperatorHandle& handle, const OpInfo& info, c10::ArrayRef<c10::IValue> stack);
  void probe_call(const c10::OperatorHandle& handle, const OpInfo& info, torch::jit::Stack& stack);

  std::unique_ptr<ir::Graph> graph_;
  ir::ShapeEnv* shapes_;
  OnBreak on_break_;
  WhereNow where_;
  Unobserved unobserved_;
  ModeLink* link_ = nullptr;  // owned by mode_object_
  Ref mode_object_;
  uint64_t serial_;
  int depth_ = 0;
  bool backward_ = false;
  int64_t last_checkpoint_ = 0;
  std::vector<int64_t> checkpoints_;  // open ones, innermost last
  std::vector<uint64_t> scouted_;     // by open scouting: the last storage from before
  bool probing_ = false;              // a shape function of torch's runs on meta tensors: nothing is recorded
  size_t calls_ = 0;
  std::vector<ir::Sym> ints_;  // int results of the call recorded last
  std::vector<at::Tensor> constants_;
  bool engine_ran_ = false;
  std::string failure_;
  std::vector<std::pair<at::Generator, std::string>> made_generators_;  // with their names in the graph
  std::unordered_set<const ir::Node*> kept_;
  std::unordered_set<int> seen_by_offset_;
};

}  // namespace graphlift::torch_layer
