// Owns: a kernel as an LLVM module. Must not: choose a schedule, or compile.
#pragma once

#include "backends/cpu/schedule.h"

namespace graphlift::cpu {

// Stages run one after another; the units of one are independent of each other.
struct KernelStage {
  ir::Sym units = 1;
  ir::Sym unit_elements = 1;  // of a unit
};

// A function `void name(void** buffers, const int64_t* numbers, int64_t begin, int64_t end)` that does units
// begin..end. Of several stages, the number behind `numbers` says which, and the buffer behind all others is memory for
// partial results.
struct KernelCode {
  std::string name;
  std::string text;
  std::vector<ir::Sym> numbers;  // what `numbers` holds in a call
  std::vector<KernelStage> stages;
  ir::Sym partial_words = 0;  // of 8 bytes
  double element_work = 1;    // about one per cheap primitive
};

KernelCode emit_kernel(const codegen::Kernel& kernel, const Schedule& schedule, const Target& target,
                       const std::string& name);

}  // namespace graphlift::cpu
