// Owns: see kernel_call.h.
#include "backends/cuda/kernel_call.h"

#include <c10/core/DeviceGuard.h>

#include <algorithm>

#include "backends/cuda/launch.h"

namespace graphlift::cuda {
namespace {

class KernelCall final : public reference::NativeCall {
 public:
  KernelCall(const ir::Node& node, const codegen::KernelMemory& memory, std::shared_ptr<const CompiledKernel> kernel)
      : kernel_(std::move(kernel)), memory_(memory), place_(torch_layer::to_torch(node.outputs[0]->device)) {
    for (const auto& type : node.outputs) results_.emplace_back(*type);
    reach_known_ = kernel_->reach().is_constant();
  }

  bool writes_inputs() const override {
    return std::any_of(memory_.results.begin(), memory_.results.end(),
                       [](const auto& result) { return result.target >= 0; });
  }

  bool fills(size_t result) const override { return memory_.results[result].target < 0; }

  void run(const at::Tensor* const* inputs, at::Tensor* outputs, std::span<const int64_t> symbols) const override {
    const c10::DeviceGuard guard(place_.device);
    Slots slots;
    put_buffers(memory_, kernel_->by_value(), place_, results_.data(), symbols, inputs, outputs, &slots);
    const LoadedKernel& loaded = choose(slots, symbols);
    for (const ir::Sym& number : loaded.source.numbers) slots.push_back(static_cast<uint64_t>(number.eval(symbols)));
    at::DataPtr workspace;
    if (loaded.source.has_workspace) {
      workspace = place_.allocator->allocate(static_cast<size_t>(loaded.source.workspace.eval(symbols)));
      slots.push_back(reinterpret_cast<uint64_t>(workspace.get()));
    }
    launch(loaded, slots, symbols);
  }

 private:
  const LoadedKernel& choose(const Slots& slots, std::span<const int64_t> symbols) const {
    Variant variant = kernel_->usual();
    if (!reach_known_) variant.wide = kernel_->reach().eval(symbols) >= kNarrowReach;
    const LoadedKernel& loaded = kernel_->variant(variant);
    const auto& alignment = loaded.source.alignment;
    bool aligned = true;
    for (size_t i = 0; i < alignment.size(); ++i)
      aligned = aligned && slots[i] % static_cast<uint64_t>(alignment[i]) == 0;
    if (aligned) return loaded;
    variant.aligned = false;
    return kernel_->variant(variant);
  }

  void launch(const LoadedKernel& loaded, Slots& slots, std::span<const int64_t> symbols) const {
    c10::SmallVector<void*, 32> parameters;
    for (uint64_t& slot : slots) parameters.push_back(&slot);
    place_.enter_context();
    void* const queue = place_.stream();
    for (size_t i = 0; i < loaded.functions.size(); ++i) {
      const KernelLaunch& launch = loaded.source.launches[i];
      const int64_t blocks = launch.blocks.eval(symbols);
      if (blocks <= 0) continue;
      check_driver(
          driver().cuLaunchKernel(loaded.functions[i], static_cast<unsigned>(blocks),
                                  static_cast<unsigned>(launch.splits), 1, static_cast<unsigned>(launch.threads), 1, 1,
                                  static_cast<unsigned>(launch.shared), queue, parameters.data(), nullptr),
          "a launch");
    }
  }

  std::shared_ptr<const CompiledKernel> kernel_;
  const codegen::KernelMemory memory_;
  const Place place_;
  std::vector<reference::ResultLayout> results_;
  bool reach_known_ = true;
};

}  // namespace

std::unique_ptr<reference::NativeCall> make_kernel_call(const ir::Node& node, const codegen::KernelMemory& memory,
                                                        std::shared_ptr<const CompiledKernel> kernel) {
  return std::make_unique<KernelCall>(node, memory, std::move(kernel));
}

}  // namespace graphlift::cuda
