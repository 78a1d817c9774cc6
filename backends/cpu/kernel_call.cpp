// Owns: see kernel_call.h.
#include "backends/cpu/kernel_call.h"

#include <ATen/EmptyTensor.h>
#include <ATen/Parallel.h>

#include "base/error.h"
#include "torch/convert.h"

namespace graphlift::cpu {
namespace {

// Work for one thread that is worth waking another one.
constexpr double kThreadWork = 32768;

// Sizes and strides of a result: read off once where they are constant.
struct ResultLayout {
  c10::ScalarType dtype;
  c10::SmallVector<int64_t, 5> sizes, strides;
  std::vector<ir::Sym> symbolic_sizes, symbolic_strides;  // empty: constant
};

bool is_constant(const ir::Dims& dims) {
  return std::all_of(dims.begin(), dims.end(), [](const ir::Sym& dim) { return dim.is_constant(); });
}

ResultLayout layout_of(const ir::TensorType& type) {
  ResultLayout layout{torch_layer::to_torch(type.dtype), {}, {}, {}, {}};
  if (is_constant(type.sizes) && is_constant(type.strides)) {
    for (const ir::Sym& size : type.sizes) layout.sizes.push_back(size.constant());
    for (const ir::Sym& stride : type.strides) layout.strides.push_back(stride.constant());
  } else {
    layout.symbolic_sizes = type.sizes;
    layout.symbolic_strides = type.strides;
  }
  return layout;
}

at::Tensor allocate(const ResultLayout& layout, std::span<const int64_t> symbols) {
  if (layout.symbolic_sizes.empty()) return at::detail::empty_strided_cpu(layout.sizes, layout.strides, layout.dtype);
  c10::SmallVector<int64_t, 5> sizes, strides;
  for (const ir::Sym& size : layout.symbolic_sizes) sizes.push_back(size.eval(symbols));
  for (const ir::Sym& stride : layout.symbolic_strides) strides.push_back(stride.eval(symbols));
  return at::detail::empty_strided_cpu(sizes, strides, layout.dtype);
}

class KernelCall final : public reference::NativeCall {
 public:
  KernelCall(const ir::Node& node, std::shared_ptr<const CompiledKernel> kernel) : kernel_(std::move(kernel)) {
    inputs_ = node.args[1].list()->size();
    for (const auto& type : node.outputs) results_.push_back(layout_of(*type));
    if (kernel_->units.is_constant()) units_ = kernel_->units.constant();
    grain_ = kernel_->unit_work > 0 ? std::max<int64_t>(1, static_cast<int64_t>(kThreadWork / kernel_->unit_work)) : 1;
  }

  void run(const at::Tensor* const* inputs, at::Tensor* outputs, std::span<const int64_t> symbols) const override {
    c10::SmallVector<void*, 24> buffers;
    for (size_t i = 0; i < inputs_; ++i) buffers.push_back(const_cast<void*>(inputs[i]->const_data_ptr()));
    for (size_t i = 0; i < results_.size(); ++i) {
      outputs[i] = allocate(results_[i], symbols);
      buffers.push_back(outputs[i].mutable_data_ptr());
    }
    c10::SmallVector<int64_t, 8> numbers;
    for (const ir::Sym& number : kernel_->numbers) numbers.push_back(number.eval(symbols));
    const int64_t units = units_ >= 0 ? units_ : kernel_->units.eval(symbols);
    if (units <= grain_) return kernel_->function(buffers.data(), numbers.data(), 0, units);
    at::parallel_for(0, units, grain_, [&](int64_t begin, int64_t end) {
      kernel_->function(buffers.data(), numbers.data(), begin, end);
    });
  }

 private:
  std::shared_ptr<const CompiledKernel> kernel_;
  std::vector<ResultLayout> results_;
  size_t inputs_ = 0;
  int64_t units_ = -1;
  int64_t grain_ = 1;
};

}  // namespace

std::unique_ptr<reference::NativeCall> make_kernel_call(const ir::Node& node,
                                                        std::shared_ptr<const CompiledKernel> kernel) {
  return std::make_unique<KernelCall>(node, std::move(kernel));
}

}  // namespace graphlift::cpu
