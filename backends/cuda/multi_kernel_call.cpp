// Owns: one element-wise kernel on many parts (kernel_call.h): the table that a launch is given, filled anew per call.
// Must not: choose the parts.
#include <c10/core/DeviceGuard.h>

#include <cstring>

#include "backends/cuda/kernel_call.h"
#include "backends/cuda/launch.h"
#include "base/error.h"

namespace graphlift::cuda {
namespace {

class MultiKernelCall final : public reference::NativeCall {
 public:
  MultiKernelCall(const ir::Node& node, const codegen::FusedGraph& fused, std::shared_ptr<const CompiledKernel> program)
      : program_(std::move(program)), place_(torch_layer::to_torch(node.outputs[0]->device)) {
    for (const auto& type : node.outputs) results_.emplace_back(*type);
    int input = 0, output = 0;
    for (const codegen::MultiKernel::Part& from : fused.multis[codegen::index_of(node)].parts) {
      const codegen::Kernel& kernel = fused.kernels[from.kernel];
      parts_.push_back(
          {fused.memory[from.kernel], kernel.axes.empty() ? 1 : kernel.axes[0].extent.constant(), input, output});
      input += static_cast<int>(from.inputs);
      output += static_cast<int>(parts_.back().memory.results.size());
      for (const auto& result : parts_.back().memory.results) writes_ = writes_ || result.target >= 0;
    }
    GL_CHECK(static_cast<size_t>(output) == results_.size(), "a multi-kernel with other results than its parts");
  }

  bool writes_inputs() const override { return writes_; }

  void run(const at::Tensor* const* inputs, at::Tensor* outputs, std::span<const int64_t> symbols) const override {
    const c10::DeviceGuard guard(place_.device);
    c10::SmallVector<uint64_t, 64> buffers;
    for (const Part& part : parts_) put_buffers(part, inputs + part.input, outputs + part.output, symbols, &buffers);
    const LoadedKernel& loaded = choose(buffers);
    const size_t most = static_cast<size_t>(kTableBytes / loaded.source.part_bytes);
    for (size_t first = 0; first < parts_.size(); first += most)
      launch(loaded, first, std::min(parts_.size(), first + most), buffers);
  }

 private:
  struct Part {
    codegen::KernelMemory memory;
    int64_t elements;
    int input, output;  // the first ones of the call that are its own
  };
  struct Table {
    alignas(8) unsigned char parts[kTableBytes];
    int count;
  };

  void put_buffers(const Part& part, const at::Tensor* const* inputs, at::Tensor* outputs,
                   std::span<const int64_t> symbols, c10::SmallVector<uint64_t, 64>* buffers) const {
    for (size_t i = 0; i < part.memory.reads; ++i) {
      uint64_t slot = 0;
      if (program_->by_value()[i])
        std::memcpy(&slot, inputs[i]->const_data_ptr(), inputs[i]->element_size());
      else
        slot = reinterpret_cast<uint64_t>(inputs[i]->const_data_ptr());
      buffers->push_back(slot);
    }
    for (size_t i = 0; i < part.memory.results.size(); ++i) {
      const codegen::KernelMemory::Result& result = part.memory.results[i];
      const Result& layout = results_[static_cast<size_t>(part.output) + i];
      outputs[i] = result.target < 0 ? layout.allocate(place_, symbols) : *inputs[result.target];
      if (result.buffer) buffers->push_back(reinterpret_cast<uint64_t>(outputs[i].mutable_data_ptr()));
    }
  }

  const LoadedKernel& choose(const c10::SmallVector<uint64_t, 64>& buffers) const {
    const LoadedKernel& loaded = program_->variant({true, false});
    const auto& alignment = loaded.source.alignment;
    for (size_t i = 0; i < buffers.size(); ++i)
      if (buffers[i] % static_cast<uint64_t>(alignment[i % alignment.size()]) != 0)
        return program_->variant({false, false});
    return loaded;
  }

  void launch(const LoadedKernel& loaded, size_t first, size_t end,
              const c10::SmallVector<uint64_t, 64>& buffers) const {
    const size_t each = loaded.source.alignment.size();
    Table table;
    table.count = static_cast<int>(end - first);
    int64_t blocks = 0;
    for (size_t i = first; i < end; ++i) {
      unsigned char* at = table.parts + (i - first) * static_cast<size_t>(loaded.source.part_bytes);
      std::memcpy(at, buffers.data() + i * each, each * sizeof(uint64_t));
      at += each * sizeof(uint64_t);
      const std::span<const int64_t> elements(&parts_[i].elements, 1);
      auto put = [&](int64_t number) {
        const int narrow = static_cast<int>(number);
        std::memcpy(at, &narrow, sizeof narrow);
        at += sizeof narrow;
      };
      for (const ir::Sym& number : loaded.source.numbers) put(number.eval(elements));
      put(blocks);
      blocks += loaded.source.launches[0].blocks.eval(elements);
    }
    if (blocks <= 0) return;
    place_.enter_context();
    void* parameters[] = {&table};
    check_driver(driver().cuLaunchKernel(loaded.functions[0], static_cast<unsigned>(blocks), 1, 1,
                                         static_cast<unsigned>(loaded.source.launches[0].threads), 1, 1, 0,
                                         place_.stream(), parameters, nullptr),
                 "a launch");
  }

  const std::shared_ptr<const CompiledKernel> program_;
  const Place place_;
  std::vector<Result> results_;
  std::vector<Part> parts_;
  bool writes_ = false;
};

}  // namespace

std::unique_ptr<reference::NativeCall> make_multi_kernel_call(const ir::Node& node, const codegen::FusedGraph& fused,
                                                              std::shared_ptr<const CompiledKernel> program) {
  return std::make_unique<MultiKernelCall>(node, fused, std::move(program));
}

}  // namespace graphlift::cuda
