// Owns: see kernel_call.h.
#include "backends/cuda/kernel_call.h"

#include <ATen/EmptyTensor.h>
#include <c10/core/Allocator.h>
#include <c10/core/DeviceGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <c10/util/SmallVector.h>

#include <algorithm>
#include <cstring>

#include "backends/cuda/driver.h"
#include "base/error.h"
#include "torch/convert.h"

namespace graphlift::cuda {
namespace {

constexpr int64_t kNarrowReach = (int64_t{1} << 31) - (int64_t{1} << 22);

c10::SmallVector<int64_t, 6> evaluated(const ir::Dims& dims, std::span<const int64_t> symbols) {
  c10::SmallVector<int64_t, 6> values;
  for (const ir::Sym& dim : dims) values.push_back(dim.eval(symbols));
  return values;
}

// Memory of torch's allocator for the device, straight from it.
struct Result {
  c10::ScalarType dtype;
  ir::Dims sizes, strides;
  bool constant;
  c10::SmallVector<int64_t, 6> known_sizes, known_strides;

  explicit Result(const ir::TensorType& type)
      : dtype(torch_layer::to_torch(type.dtype)),
        sizes(type.sizes),
        strides(type.strides),
        constant(ir::is_constant(type.sizes) && ir::is_constant(type.strides)) {
    if (constant) known_sizes = evaluated(sizes, {}), known_strides = evaluated(strides, {});
  }

  at::Tensor allocate(c10::Allocator* allocator, c10::DispatchKeySet keys, std::span<const int64_t> symbols) const {
    if (constant)
      return at::Tensor(at::detail::empty_strided_generic(known_sizes, known_strides, allocator, keys, dtype));
    return at::Tensor(at::detail::empty_strided_generic(evaluated(sizes, symbols), evaluated(strides, symbols),
                                                        allocator, keys, dtype));
  }
};

class KernelCall final : public reference::NativeCall {
 public:
  KernelCall(const ir::Node& node, std::shared_ptr<const CompiledKernel> kernel)
      : kernel_(std::move(kernel)), device_(torch_layer::to_torch(node.outputs[0]->device)) {
    inputs_ = node.args[1].list()->size();
    for (const auto& type : node.outputs) results_.emplace_back(*type);
    allocator_ = c10::GetAllocator(device_.type());
    keys_ = c10::DispatchKeySet(c10::computeDispatchKey(std::nullopt, std::nullopt, device_));
    reach_known_ = kernel_->reach().is_constant();
  }

  void run(const at::Tensor* const* inputs, at::Tensor* outputs, std::span<const int64_t> symbols) const override {
    const c10::DeviceGuard guard(device_);
    Arguments arguments;
    arguments.slots.resize(inputs_ + results_.size());
    for (size_t i = 0; i < inputs_; ++i) put_input(*inputs[i], i, &arguments);
    for (size_t i = 0; i < results_.size(); ++i) {
      outputs[i] = results_[i].allocate(allocator_, keys_, symbols);
      arguments.slots[inputs_ + i] = reinterpret_cast<uint64_t>(outputs[i].mutable_data_ptr());
    }
    const LoadedKernel& loaded = choose(arguments, symbols);
    for (const ir::Sym& number : loaded.source.numbers)
      arguments.slots.push_back(static_cast<uint64_t>(number.eval(symbols)));
    at::DataPtr workspace;
    if (loaded.source.has_workspace) {
      workspace = allocator_->allocate(static_cast<size_t>(loaded.source.workspace.eval(symbols)));
      arguments.slots.push_back(reinterpret_cast<uint64_t>(workspace.get()));
    }
    launch(loaded, arguments, symbols);
  }

 private:
  struct Arguments {
    c10::SmallVector<uint64_t, 32> slots;  // little-endian: a narrow argument is read from a slot's first bytes
  };

  void put_input(const at::Tensor& input, size_t i, Arguments* arguments) const {
    uint64_t& slot = arguments->slots[i];
    slot = 0;
    if (kernel_->by_value()[i])
      std::memcpy(&slot, input.const_data_ptr(), input.element_size());
    else
      slot = reinterpret_cast<uint64_t>(input.const_data_ptr());
  }

  const LoadedKernel& choose(const Arguments& arguments, std::span<const int64_t> symbols) const {
    Variant variant = kernel_->usual();
    if (!reach_known_) variant.wide = kernel_->reach().eval(symbols) >= kNarrowReach;
    const LoadedKernel& loaded = kernel_->variant(variant);
    const auto& alignment = loaded.source.alignment;
    bool aligned = true;
    for (size_t i = 0; i < alignment.size(); ++i)
      aligned = aligned && arguments.slots[i] % static_cast<uint64_t>(alignment[i]) == 0;
    if (aligned) return loaded;
    variant.aligned = false;
    return kernel_->variant(variant);
  }

  void* stream() const {
    if (!device_.is_cuda()) return nullptr;
    return c10::impl::VirtualGuardImpl(device_.type()).getStream(device_).native_handle();
  }

  void launch(const LoadedKernel& loaded, Arguments& arguments, std::span<const int64_t> symbols) const {
    c10::SmallVector<void*, 32> parameters;
    for (uint64_t& slot : arguments.slots) parameters.push_back(&slot);
    enter_context();
    void* const queue = stream();
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

  // A thread on which torch's runtime did nothing yet has no context.
  void enter_context() const {
    void* current = nullptr;
    driver().cuCtxGetCurrent(&current);
    if (!current)
      check_driver(driver().cuCtxSetCurrent(device_facts(std::max<int>(0, device_.index())).context), "a context");
  }

  std::shared_ptr<const CompiledKernel> kernel_;
  c10::Device device_;
  std::vector<Result> results_;
  c10::Allocator* allocator_ = nullptr;
  c10::DispatchKeySet keys_;
  size_t inputs_ = 0;
  bool reach_known_ = true;
};

}  // namespace

std::unique_ptr<reference::NativeCall> make_kernel_call(const ir::Node& node,
                                                        std::shared_ptr<const CompiledKernel> kernel) {
  return std::make_unique<KernelCall>(node, std::move(kernel));
}

}  // namespace graphlift::cuda
