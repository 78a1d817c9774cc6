// Owns: compiled kernels of the process, by content. Compilation is llvmlite's, through graphlift.llvm; the GIL is
// held. Must not: know graphs.
#pragma once

#include <memory>
#include <span>

#include "backends/cpu/llvm_kernel.h"

namespace graphlift::cpu {

using KernelFunction = void (*)(void* const* buffers, const int64_t* numbers, int64_t begin, int64_t end);

struct CompiledKernel {
  KernelFunction function = nullptr;
  std::vector<ir::Sym> numbers;
  std::vector<KernelStage> stages;
  ir::Sym partial_words = 0;
  double element_work = 1;
};

// What LLVM and torch's math library offer on this machine; asked once.
const Target& host_target();
// Why kernels can't be compiled here (llvmlite is missing); empty: they can.
const std::string& jit_refusal();
// Makes those that are not known yet as one module, which takes less time than one after another.
void compile_kernels(std::span<const codegen::Kernel* const> kernels);
std::shared_ptr<const CompiledKernel> compile_kernel(const codegen::Kernel& kernel);
// Behind a graph's kernels and products: the pages of LLVM's code, and of oneDNN's, are given back, where compiling
// took long beside reading them again.
void rest_compiler();

}  // namespace graphlift::cpu
