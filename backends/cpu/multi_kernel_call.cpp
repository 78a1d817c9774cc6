// Owns: see multi_kernel_call.h.
#include "backends/cpu/multi_kernel_call.h"

#include <algorithm>

#include "backends/cpu/kernel_call.h"
#include "backends/cpu/result_layout.h"
#include "backends/cpu/thread_team.h"
#include "base/error.h"

namespace graphlift::cpu {
namespace {

// What starting a part costs, in elements.
constexpr int64_t kPartWork = 64;

// Elements for one thread: many parts that are small together are done before another thread is awake.
int64_t share_elements(double element_work) {
  constexpr int64_t kMost = 65536;
  return std::min(kMost, 16 * thread_elements(element_work));
}

// Where a part's work lies in that of all parts: its first unit at `start`, the next ones `unit` apart behind the
// overhead.
struct Part {
  int64_t start = 0, end = 0;
  int64_t units = 0;
  size_t buffer = 0, number = 0;  // its first ones

  // Units that begin before a place.
  int64_t units_before(int64_t place, int64_t unit) const {
    if (place <= start) return 0;
    if (place >= end) return units;
    const int64_t inside = place - start - kPartWork;
    return inside <= 0 ? 1 : std::min(units, (inside + unit - 1) / unit);
  }
};

class MultiKernelCall final : public reference::NativeCall {
 public:
  MultiKernelCall(const ir::Node& node, const codegen::FusedGraph& fused, std::shared_ptr<const CompiledKernel> program)
      : program_(std::move(program)) {
    const codegen::MultiKernel& multi = fused.multis[codegen::index_of(node)];
    GL_CHECK(program_->stages.size() == 1 && program_->stages[0].unit_elements.is_constant(),
             "a part of a multi-kernel that is no element-wise kernel");
    unit_ = program_->stages[0].unit_elements.constant();
    for (const auto& type : node.outputs) layouts_.emplace_back(*type);
    int64_t work = 0;
    int input = 0;
    for (const codegen::MultiKernel::Part& part : multi.parts) {
      add_part(fused.kernels[part.kernel], &work);
      add_buffers(fused.memory[part.kernel], input);
      input += static_cast<int>(part.inputs);
    }
    GL_CHECK(targets_.size() == layouts_.size(), "a multi-kernel with other results than its parts");
  }

  bool writes_inputs() const override {
    return std::any_of(targets_.begin(), targets_.end(), [](int target) { return target >= 0; });
  }

  bool fills(size_t result) const override { return targets_[result] < 0; }

  void run(const at::Tensor* const* inputs, at::Tensor* outputs, std::span<const int64_t> symbols) const override {
    for (size_t i = 0; i < layouts_.size(); ++i) {
      if (targets_[i] >= 0)
        outputs[i] = reference::to_be_written(*inputs[targets_[i]]);
      else if (!outputs[i].defined())
        outputs[i] = layouts_[i].allocate(symbols);
    }
    c10::SmallVector<void*, 64> buffers;
    buffers.reserve(buffers_.size());
    for (const int source : buffers_)
      buffers.push_back(source >= 0 ? const_cast<void*>(inputs[source]->const_data_ptr())
                                    : outputs[~source].mutable_data_ptr());
    Job job{*this, buffers.data()};
    share_units(parts_.back().end, share_elements(program_->element_work), run_job, &job);
  }

 private:
  void add_part(const codegen::Kernel& kernel, int64_t* work) {
    const int64_t elements = kernel.axes.empty() ? 1 : kernel.axes[0].extent.constant();
    const std::span<const int64_t> symbols(&elements, 1);
    Part part;
    part.units = program_->stages[0].units.eval(symbols);
    part.start = *work;
    part.end = *work += kPartWork + elements;
    part.buffer = buffers_.size();
    part.number = numbers_.size();
    for (const ir::Sym& number : program_->numbers) numbers_.push_back(number.eval(symbols));
    parts_.push_back(part);
  }

  void add_buffers(const codegen::KernelMemory& memory, int first_input) {
    for (int i = 0; i < static_cast<int>(memory.reads); ++i) buffers_.push_back(first_input + i);
    for (const codegen::KernelMemory::Result& result : memory.results) {
      if (result.buffer) buffers_.push_back(~static_cast<int>(targets_.size()));
      targets_.push_back(result.target < 0 ? -1 : first_input + result.target);
    }
  }

  struct Job {
    const MultiKernelCall& call;
    void* const* buffers;
  };

  // The units that begin in a stretch of all work.
  static void run_job(void* context, int64_t begin, int64_t end) {
    const Job& job = *static_cast<const Job*>(context);
    const MultiKernelCall& call = job.call;
    auto part = std::partition_point(call.parts_.begin(), call.parts_.end(),
                                     [&](const Part& each) { return each.end <= begin; });
    for (; part != call.parts_.end() && part->start < end; ++part) {
      const int64_t from = part->units_before(begin, call.unit_), to = part->units_before(end, call.unit_);
      if (from < to) call.program_->function(job.buffers + part->buffer, call.numbers_.data() + part->number, from, to);
    }
  }

  const std::shared_ptr<const CompiledKernel> program_;
  int64_t unit_ = 1;  // elements of one
  std::vector<ResultLayout> layouts_;
  std::vector<int> targets_;  // by result: the input that it is written to; -1: memory of its own
  std::vector<int> buffers_;  // of all parts: an input, or ~result
  std::vector<int64_t> numbers_;
  std::vector<Part> parts_;
};

}  // namespace

std::unique_ptr<reference::NativeCall> make_multi_kernel_call(const ir::Node& node, const codegen::FusedGraph& fused,
                                                              std::shared_ptr<const CompiledKernel> program) {
  return std::make_unique<MultiKernelCall>(node, fused, std::move(program));
}

}  // namespace graphlift::cpu
