// Owns: a graph as a flat list of calls over numbered slots; everything that can be known ahead is. Other backends put
// native calls into it.
// Must not: allocate per step beyond what torch's boxed calling convention asks for.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/ivalue.h>

#include <functional>
#include <memory>
#include <vector>

#include "backend/backend.h"
#include "backends/reference/arena.h"
#include "ir/graph.h"

namespace graphlift::reference {

// Where an argument of a call comes from.
struct Operand {
  enum class Kind : uint8_t {
    Constant,  // constants[index]
    Slot,      // slots[index]
    LastSlot,  // slots[index], for the last time: moved from
    Computed,  // computed[index]: lists of values, symbolic ints
  };
  Kind kind;
  int32_t index;
};

// An argument that is made anew in each run. Values in it are {nullptr, slot}.
struct ComputedArg {
  ir::Arg arg;
  c10::TypePtr type;
};

// A call that a backend runs itself instead of torch. Thread-safe, as CompiledGraph is.
class NativeCall {
 public:
  virtual ~NativeCall() = default;
  // `inputs`: one per value among the node's arguments, in order, lists flattened; no result is memory of one unless
  // the graph was told to write there. `outputs`: an undefined tensor per result of the node, or, of a result that the
  // call fills(), one that lies as the graph says.
  virtual void run(const at::Tensor* const* inputs, at::Tensor* outputs, std::span<const int64_t> symbols) const = 0;
  // Whether it writes a result to memory that it is given.
  virtual bool fills(size_t /*result*/) const { return false; }
  // Whether it writes to inputs of the graph, as `backend::Options::writes` allows.
  virtual bool writes_inputs() const { return false; }
};
// An input that a call writes its result to. Memory that tensors share until one of them is written to (copy-on-write)
// becomes its own, so addresses are to be asked for afterwards.
inline at::Tensor to_be_written(const at::Tensor& input) {
  input.mutable_data_ptr();
  return input;
}

// Null: torch runs the node.
using NativeFactory = std::function<std::unique_ptr<NativeCall>(const ir::Node& node)>;

// How a result must lie for native steps that read it: they rely on the graph's types.
struct ExpectedResult {
  c10::ScalarType dtype;
  ir::Dims sizes, strides;
};

struct Step {
  std::optional<c10::OperatorHandle> op;  // without a native call
  std::shared_ptr<const NativeCall> native;
  std::vector<int32_t> reads;  // of a native call: slots
  std::vector<Operand> operands;
  std::vector<int32_t> results;                         // slot per result, lists flattened; -1: dropped
  std::vector<std::optional<ExpectedResult>> expected;  // with native steps alone: per result
  std::vector<int32_t> in_arena;                        // per result, its place there or -1; empty: none has one
  std::vector<int32_t> releases;                        // slots that only a computed argument of this step still needed
  bool grad_mode = false;                               // the operator is called with it on
  bool reads_arena = false;                             // of an operator: what has its place there
  bool leaves = false;                                  // memory of a result is a visible output's
};

class Program final : public backend::CompiledGraph {
 public:
  Program(const ir::Graph& graph, const std::vector<at::Tensor>& constants);
  // `native` is asked for each call first. `original`: the graph that `graph` was made of; native calls get all symbols
  // that it names. `visible`: outputs in front of this one leave the program, the others are its backward's. `arena`:
  // results that live within a run have planned places.
  Program(const ir::Graph& graph, const std::vector<at::Tensor>& constants, const NativeFactory& native,
          const ir::Graph& original, size_t visible = SIZE_MAX, bool arena = false);
  void run(at::Tensor* inputs, const int64_t* symbols, at::Tensor* outputs) const override;

 private:
  friend class Builder;
  struct Running;
  void execute(const Step& step, Running& running) const;
  void execute_after_writing(Running& running) const;
  class Placing;
  void execute_native(const Step& step, Running& running) const;
  void check_results(const Step& step, Running& running) const;
  void check_memory(const Step& step, Running& running) const;

  size_t slot_count_ = 0;
  size_t symbol_count_ = 0;
  size_t stack_size_ = 0;
  std::vector<int32_t> input_slots_;  // -1: no use
  std::vector<std::pair<int32_t, c10::IValue>> constant_slots_;
  std::vector<Step> steps_;
  size_t writes_from_ = SIZE_MAX;  // the first step that writes to inputs
  std::vector<c10::IValue> constants_;
  std::vector<ComputedArg> computed_;
  struct Output {
    int32_t slot;  // -1: undefined
    bool last;     // moved from
  };
  std::vector<Output> outputs_;
  size_t visible_ = SIZE_MAX;
  mutable ArenaPool arenas_;
};

}  // namespace graphlift::reference
