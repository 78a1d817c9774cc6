// Owns: a kernel as an LLVM module. Must not: choose a schedule, or compile.
#pragma once

#include "backends/cpu/schedule.h"

namespace graphlift::cpu {

// A function `void name(void** buffers, const int64_t* numbers, int64_t begin, int64_t end)` that does units
// begin..end; units are independent of each other.
struct KernelCode {
  std::string name;
  std::string text;
  std::vector<ir::Sym> numbers;      // what `numbers` holds in a call
  std::vector<std::string> imports;  // functions of other libraries
  ir::Sym units;
  ir::Sym unit_elements;    // of a unit
  double element_work = 1;  // about one per cheap primitive
};

KernelCode emit_kernel(const codegen::Kernel& kernel, const Schedule& schedule, const Target& target,
                       const std::string& name);

}  // namespace graphlift::cpu
