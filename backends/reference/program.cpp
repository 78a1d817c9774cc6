// Owns: running a Program.
#include "backends/reference/program.h"

#include <ATen/ATen.h>
#include <ATen/core/stack.h>
#include <c10/util/SmallVector.h>

#include <optional>
#include <unordered_set>

#include "backends/reference/placement.h"
#include "base/error.h"
#include "torch/convert.h"

namespace graphlift::reference {

struct Program::Running {
  c10::SmallVector<c10::IValue, 24> slots;
  torch::jit::Stack stack;
  std::span<const int64_t> symbols;
  const Arena* arena = nullptr;
  Placing* placing = nullptr;
};

// Tells the listener of results that leave, and looks that they do: an operator may answer with memory of another one.
class Program::Placing {
 public:
  explicit Placing(PlacementListener* listener) : listener_(*listener) {}

  void before(const Step& step) {
    if (step.leaves != leaving_) listener_.place(leaving_ = step.leaves);
  }
  void after(const Step& step, const Running& running) {
    for (const int32_t slot : step.results)
      if (slot >= 0) note(running.slots[static_cast<size_t>(slot)], step.leaves);
  }
  void end() {
    if (leaving_) listener_.place(leaving_ = false);
  }
  void check(const at::Tensor& output) const {
    const void* memory = memory_of(output);
    if (memory && inside_.contains(memory) && !outside_.contains(memory))
      throw std::runtime_error("a result lies in memory that was taken for one of the graph's own");
  }

 private:
  static const void* memory_of(const at::Tensor& tensor) {
    return tensor.defined() && tensor.has_storage() ? tensor.storage().data() : nullptr;
  }
  void note(const c10::IValue& value, bool leaves) {
    if (const void* memory = value.isTensor() ? memory_of(value.toTensor()) : nullptr)
      (leaves ? outside_ : inside_).insert(memory);
  }

  PlacementListener& listener_;
  bool leaving_ = false;
  std::unordered_set<const void*> inside_, outside_;
};

void Program::execute_native(const Step& step, Running& running) const {
  c10::SmallVector<const at::Tensor*, 16> inputs;
  for (int32_t slot : step.reads) inputs.push_back(&running.slots[static_cast<size_t>(slot)].toTensor());
  c10::SmallVector<at::Tensor, 4> outputs(step.results.size());
  if (running.arena)
    for (size_t i = 0; i < step.in_arena.size(); ++i)
      if (step.in_arena[i] >= 0) outputs[i] = running.arena->at(step.in_arena[i]);
  step.native->run(inputs.data(), outputs.data(), running.symbols);
  for (int32_t slot : step.releases) running.slots[static_cast<size_t>(slot)] = c10::IValue();
  for (size_t i = 0; i < outputs.size(); ++i)
    if (step.results[i] >= 0) running.slots[static_cast<size_t>(step.results[i])] = std::move(outputs[i]);
}

namespace {

bool lies_as(const at::Tensor& tensor, const ExpectedResult& expected, std::span<const int64_t> symbols) {
  if (tensor.dim() != static_cast<int64_t>(expected.sizes.size())) return false;
  for (size_t i = 0; i < expected.sizes.size(); ++i) {
    const auto dim = static_cast<int64_t>(i);
    if (tensor.size(dim) != expected.sizes[i].eval(symbols)) return false;
    if (tensor.size(dim) != 1 && tensor.stride(dim) != expected.strides[i].eval(symbols) && tensor.numel() > 0)
      return false;
  }
  return true;
}

}  // namespace

// Torch's kernels sometimes answer in another layout than was foreseen; what reads the memory directly gets a copy.
void Program::check_results(const Step& step, Running& running) const {
  for (size_t i = 0; i < step.expected.size(); ++i) {
    if (!step.expected[i] || step.results[i] < 0) continue;
    const ExpectedResult& expected = *step.expected[i];
    c10::IValue& slot = running.slots[static_cast<size_t>(step.results[i])];
    const at::Tensor& tensor = slot.toTensor();
    if (!tensor.defined()) continue;
    GL_CHECK(tensor.scalar_type() == expected.dtype,
             "an operator's result has another dtype than its shape rule says: " + step.op->schema().name());
    if (lies_as(tensor, expected, running.symbols)) continue;
    std::vector<int64_t> sizes, strides;
    for (const ir::Sym& size : expected.sizes) sizes.push_back(size.eval(running.symbols));
    for (const ir::Sym& stride : expected.strides) strides.push_back(stride.eval(running.symbols));
    GL_CHECK(tensor.sizes() == c10::IntArrayRef(sizes),
             "an operator's result has other sizes than its shape rule says: " + step.op->schema().name());
    slot = at::empty_strided(sizes, strides, tensor.options()).copy_(tensor);
  }
}

// An operator that answers with memory of its argument, though its schema does not say so: nothing may be written over
// that from now on.
void Program::check_memory(const Step& step, Running& running) const {
  for (const int32_t slot : step.results) {
    if (slot < 0) continue;
    const c10::IValue& value = running.slots[static_cast<size_t>(slot)];
    if (!value.isTensor() || !value.toTensor().defined() || !value.toTensor().has_storage()) continue;
    if (running.arena->holds(value.toTensor().storage().data())) running.arena = nullptr;
    if (!running.arena) return;
  }
}

void Program::execute(const Step& step, Running& running) const {
  if (running.placing) {
    Placing* const placing = std::exchange(running.placing, nullptr);
    placing->before(step);
    execute(step, running);
    placing->after(step, running);
    running.placing = placing;
    return;
  }
  if (step.native) return execute_native(step, running);
  torch::jit::Stack& stack = running.stack;
  stack.clear();
  for (const Operand& operand : step.operands) {
    const auto index = static_cast<size_t>(operand.index);
    switch (operand.kind) {
      case Operand::Kind::Constant:
        stack.push_back(constants_[index]);
        break;
      case Operand::Kind::Slot:
        stack.push_back(running.slots[index]);
        break;
      case Operand::Kind::LastSlot:
        stack.push_back(std::move(running.slots[index]));
        break;
      case Operand::Kind::Computed: {
        const ComputedArg& computed = computed_[index];
        auto read = [&](const ir::ValueRef& value) { return running.slots[static_cast<size_t>(value.index)]; };
        stack.push_back(torch_layer::to_ivalue(computed.arg, computed.type, read, running.symbols));
        break;
      }
    }
  }
  for (int32_t slot : step.releases) running.slots[static_cast<size_t>(slot)] = c10::IValue();
  if (step.grad_mode) {
    const c10::AutoGradMode on(true);
    step.op->callBoxed(stack);
  } else {
    step.op->callBoxed(stack);
  }

  auto result = step.results.begin();
  auto deliver = [&](c10::IValue&& value) {
    GL_CHECK(result != step.results.end(), "more results than the graph says");
    if (*result >= 0) running.slots[static_cast<size_t>(*result)] = std::move(value);
    ++result;
  };
  for (c10::IValue& value : stack) {
    if (value.isTensorList()) {
      for (const at::Tensor& tensor : value.toTensorVector()) deliver(tensor);
    } else {
      deliver(std::move(value));
    }
  }
  GL_CHECK(result == step.results.end(), "fewer results than the graph says");
  if (!step.expected.empty()) check_results(step, running);
  if (step.reads_arena && running.arena) check_memory(step, running);
}

void Program::execute_after_writing(Running& running) const {
  try {
    for (size_t i = writes_from_; i < steps_.size(); ++i) execute(steps_[i], running);
  } catch (const InternalError& error) {
    throw LateInternalError(error.what());
  } catch (const std::exception& error) {
    throw backend::AfterWriting(error.what());
  }
}

void Program::run(at::Tensor* inputs, const int64_t* symbols, at::Tensor* outputs) const {
  // A listener is told of memory as it is allocated.
  const ArenaLease lease(arenas_.empty() || placement_listener() ? nullptr : &arenas_);
  Running running;  // behind the lease: it refers to the arena's tensors
  running.arena = lease.arena();
  running.slots.resize(slot_count_);
  running.stack.reserve(stack_size_);
  running.symbols = {symbols, symbol_count_};
  std::optional<Placing> placing;
  if (PlacementListener* listener = placement_listener()) running.placing = &placing.emplace(listener);
  for (size_t i = 0; i < input_slots_.size(); ++i) {
    if (input_slots_[i] >= 0)
      running.slots[static_cast<size_t>(input_slots_[i])] = std::move(inputs[i]);
    else
      inputs[i].reset();
  }
  for (const auto& [slot, tensor] : constant_slots_) running.slots[static_cast<size_t>(slot)] = tensor;
  const size_t plain = std::min(writes_from_, steps_.size());
  for (size_t i = 0; i < plain; ++i) execute(steps_[i], running);
  if (plain < steps_.size()) execute_after_writing(running);
  if (placing) placing->end();
  for (size_t i = 0; i < outputs_.size(); ++i) {
    const Output& output = outputs_[i];
    if (output.slot < 0) continue;
    c10::IValue& value = running.slots[static_cast<size_t>(output.slot)];
    outputs[i] = output.last ? std::move(value).toTensor() : value.toTensor();
    if (placing && i < visible_) placing->check(outputs[i]);
  }
}

}  // namespace graphlift::reference
