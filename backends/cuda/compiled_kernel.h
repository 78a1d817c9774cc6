// Owns: compiled kernels of the process, by content and GPU, each in the variants that calls asked for; code is kept on
// disk. Must not: know graphs or tensors.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>

#include "backends/cuda/cuda_kernel.h"

namespace graphlift::cuda {

// A variant that can be launched.
struct LoadedKernel {
  KernelSource source;
  std::vector<void*> functions;  // one per launch
};

class CompiledKernel {
 public:
  // `parts`: one launch serves many; see emit_multi_kernel().
  CompiledKernel(codegen::Kernel kernel, std::vector<bool> by_value, const Target& target, bool parts);
  // Compiled on first use. Any thread, with or without the GIL.
  const LoadedKernel& variant(const Variant& variant) const;
  const Variant& usual() const { return usual_; }
  const ir::Sym& reach() const { return reach_; }
  const std::vector<bool>& by_value() const { return by_value_; }

 private:
  friend class KernelBatch;
  static size_t index(const Variant& variant) { return (variant.aligned ? 0 : 1) + (variant.wide ? 2 : 0); }
  KernelSource emit(const Variant& variant) const;

  codegen::Kernel kernel_;
  std::vector<bool> by_value_;
  Target target_;
  bool parts_;
  ir::Sym reach_;
  Variant usual_;
  mutable std::mutex mutex_;
  mutable std::atomic<const LoadedKernel*> loaded_[4] = {};
};

// Kernels that are compiled together, in their usual variants.
class KernelBatch {
 public:
  explicit KernelBatch(const Target& target) : target_(target) {}
  std::shared_ptr<const CompiledKernel> add(const codegen::Kernel& kernel, const std::vector<bool>& by_value,
                                            bool parts = false, const Tiling& tiling = {});
  void compile();  // with the GIL, which is released meanwhile

 private:
  Target target_;
  std::vector<std::shared_ptr<const CompiledKernel>> added_;
};

// For tests: cubins of programs, without a GPU. Throws InternalError with the compiler's words.
std::vector<std::string> compiled_code(const std::vector<std::string>& texts, int architecture);

}  // namespace graphlift::cuda
