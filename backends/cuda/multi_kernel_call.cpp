// Owns: one element-wise kernel on many parts (kernel_call.h): the tables that launches are given, of which calls fill
// in the addresses. Must not: choose the parts.
#include <c10/core/DeviceGuard.h>

#include <algorithm>
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
      for (const auto& result : parts_.back().memory.results) fills_.push_back(result.target < 0);
    }
    GL_CHECK(static_cast<size_t>(output) == results_.size(), "a multi-kernel with other results than its parts");
    usual_ = &program_->variant(program_->usual());
    launches_ = planned(*usual_);
  }

  bool writes_inputs() const override { return std::find(fills_.begin(), fills_.end(), false) != fills_.end(); }

  bool fills(size_t result) const override { return fills_[result]; }

  void run(const at::Tensor* const* inputs, at::Tensor* outputs, std::span<const int64_t> symbols) const override {
    const c10::DeviceGuard guard(place_.device);
    Slots buffers;
    for (const Part& part : parts_)
      put_buffers(part.memory, program_->by_value(), place_, results_.data() + part.output, symbols,
                  inputs + part.input, outputs + part.output, &buffers);
    const LoadedKernel& loaded = choose(buffers);
    std::vector<Launch> others;
    if (&loaded != usual_) others = planned(loaded);
    place_.enter_context();
    for (const Launch& each : &loaded == usual_ ? launches_ : others) launch(loaded, each, buffers);
  }

 private:
  struct Part {
    codegen::KernelMemory memory;
    int64_t elements;
    int input, output;  // the first ones of the call that are its own
  };
  struct Table {
    alignas(8) unsigned char parts[kTableBytes];
    int count = 0;
  };
  // Of the parts from `first` on, as many as a table has room for.
  struct Launch {
    size_t first;
    int64_t blocks = 0;
    Table table = {};
  };

  const LoadedKernel& choose(const Slots& buffers) const {
    const auto& alignment = usual_->source.alignment;
    for (size_t i = 0; i < buffers.size(); ++i)
      if (buffers[i] % static_cast<uint64_t>(alignment[i % alignment.size()]) != 0)
        return program_->variant({false, false});
    return *usual_;
  }

  // Tables with all but the addresses.
  std::vector<Launch> planned(const LoadedKernel& loaded) const {
    const auto each = static_cast<size_t>(loaded.source.part_bytes), most = kTableBytes / each;
    std::vector<Launch> launches;
    for (size_t i = 0; i < parts_.size(); ++i) {
      if (i % most == 0) launches.push_back({i});
      Launch& launch = launches.back();
      unsigned char* at = launch.table.parts + i % most * each + loaded.source.alignment.size() * sizeof(uint64_t);
      const std::span<const int64_t> elements(&parts_[i].elements, 1);
      auto put = [&](int64_t number) {
        const int narrow = static_cast<int>(number);
        std::memcpy(at, &narrow, sizeof narrow);
        at += sizeof narrow;
      };
      for (const ir::Sym& number : loaded.source.numbers) put(number.eval(elements));
      put(launch.blocks);
      launch.blocks += loaded.source.launches[0].blocks.eval(elements);
      ++launch.table.count;
    }
    return launches;
  }

  void launch(const LoadedKernel& loaded, const Launch& planned, const Slots& buffers) const {
    const auto bytes = static_cast<size_t>(loaded.source.part_bytes), each = loaded.source.alignment.size();
    Table table = planned.table;
    for (size_t i = 0; i < static_cast<size_t>(table.count); ++i)
      std::memcpy(table.parts + i * bytes, buffers.data() + (planned.first + i) * each, each * sizeof(uint64_t));
    void* parameters[] = {&table};
    check_driver(driver().cuLaunchKernel(loaded.functions[0], static_cast<unsigned>(planned.blocks), 1, 1,
                                         static_cast<unsigned>(loaded.source.launches[0].threads), 1, 1, 0,
                                         place_.stream(), parameters, nullptr),
                 "a launch");
  }

  const std::shared_ptr<const CompiledKernel> program_;
  const Place place_;
  std::vector<reference::ResultLayout> results_;
  std::vector<Part> parts_;
  std::vector<bool> fills_;       // by result: it has memory of its own
  const LoadedKernel* usual_;     // kept by `program_`
  std::vector<Launch> launches_;  // of the usual variant
};

}  // namespace

std::unique_ptr<reference::NativeCall> make_multi_kernel_call(const ir::Node& node, const codegen::FusedGraph& fused,
                                                              std::shared_ptr<const CompiledKernel> program) {
  return std::make_unique<MultiKernelCall>(node, fused, std::move(program));
}

}  // namespace graphlift::cuda
