// Owns: see kernel_call.h.
#include "backends/cpu/kernel_call.h"

#include <algorithm>

#include "backends/cpu/block_pool.h"
#include "backends/cpu/result_layout.h"
#include "backends/cpu/thread_team.h"

namespace graphlift::cpu {
namespace {

class KernelCall final : public reference::NativeCall {
 public:
  KernelCall(const ir::Node& node, const codegen::KernelMemory& memory, std::shared_ptr<const CompiledKernel> kernel)
      : kernel_(std::move(kernel)), memory_(memory) {
    for (const auto& type : node.outputs) results_.emplace_back(*type);
    for (const KernelStage& stage : kernel_->stages) {
      Share share;
      if (stage.units.is_constant()) share.units = stage.units.constant();
      if (stage.unit_elements.is_constant()) share.grain = grain(stage.unit_elements.constant());
      shares_.push_back(share);
    }
  }

  bool writes_inputs() const override {
    return std::any_of(memory_.results.begin(), memory_.results.end(),
                       [](const auto& result) { return result.target >= 0; });
  }

  bool fills(size_t result) const override { return memory_.results[result].target < 0; }

  void run(const at::Tensor* const* inputs, at::Tensor* outputs, std::span<const int64_t> symbols) const override {
    for (size_t i = 0; i < results_.size(); ++i) {
      const int target = memory_.results[i].target;
      if (target >= 0)
        outputs[i] = reference::to_be_written(*inputs[target]);
      else if (!outputs[i].defined())
        outputs[i] = results_[i].allocate(symbols);
    }
    c10::SmallVector<void*, 24> buffers;
    for (size_t i = 0; i < memory_.reads; ++i) buffers.push_back(const_cast<void*>(inputs[i]->const_data_ptr()));
    for (size_t i = 0; i < results_.size(); ++i)
      if (memory_.results[i].buffer) buffers.push_back(outputs[i].mutable_data_ptr());
    c10::SmallVector<int64_t, 8> numbers;
    for (const ir::Sym& number : kernel_->numbers) numbers.push_back(number.eval(symbols));
    if (shares_.size() == 1) return run_stage(0, buffers.data(), numbers.data(), symbols);
    const auto words = static_cast<size_t>(kernel_->partial_words.eval(symbols));
    const bool large = words * sizeof(double) >= kPooledBytes;
    c10::SmallVector<double, 256> partials(large ? 0 : words);
    const c10::DataPtr block = large ? block_pool()->allocate(words * sizeof(double)) : c10::DataPtr();
    buffers.push_back(large ? block.get() : partials.data());
    numbers.push_back(0);
    for (size_t stage = 0; stage < shares_.size(); ++stage) {
      numbers.back() = static_cast<int64_t>(stage);
      run_stage(stage, buffers.data(), numbers.data(), symbols);
    }
  }

 private:
  struct Job {
    KernelFunction function;
    void* const* buffers;
    const int64_t* numbers;
  };
  static void run_job(void* context, int64_t begin, int64_t end) {
    const Job& job = *static_cast<const Job*>(context);
    job.function(job.buffers, job.numbers, begin, end);
  }

  void run_stage(size_t i, void* const* buffers, const int64_t* numbers, std::span<const int64_t> symbols) const {
    const KernelStage& stage = kernel_->stages[i];
    const Share& share = shares_[i];
    Job job{kernel_->function, buffers, numbers};
    share_units(share.units >= 0 ? share.units : stage.units.eval(symbols),
                share.grain > 0 ? share.grain : grain(stage.unit_elements.eval(symbols)), run_job, &job);
  }

  // Units that are worth another thread.
  int64_t grain(int64_t unit_elements) const {
    return std::max<int64_t>(1, thread_elements(kernel_->element_work) / std::max<int64_t>(unit_elements, 1));
  }

  std::shared_ptr<const CompiledKernel> kernel_;
  std::vector<ResultLayout> results_;
  const codegen::KernelMemory memory_;
  // Of a stage, as far as sizes don't vary.
  struct Share {
    int64_t units = -1;
    int64_t grain = 0;
  };
  c10::SmallVector<Share, 3> shares_;
};

}  // namespace

int64_t thread_elements(double element_work) {
  constexpr double kThreadWork = 32768;
  return std::max<int64_t>(1, static_cast<int64_t>(kThreadWork / element_work));
}

std::unique_ptr<reference::NativeCall> make_kernel_call(const ir::Node& node, const codegen::KernelMemory& memory,
                                                        std::shared_ptr<const CompiledKernel> kernel) {
  return std::make_unique<KernelCall>(node, memory, std::move(kernel));
}

}  // namespace graphlift::cpu
