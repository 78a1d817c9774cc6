// Owns: a kernel as a CUDA C++ program. Must not: choose a schedule, or compile.
#pragma once

#include "backends/cuda/schedule.h"

namespace graphlift::cuda {

// One launch of a kernel; all launches have the same parameters.
struct KernelLaunch {
  std::string name;
  ir::Sym blocks;  // gridDim.x
  int splits;      // gridDim.y
  int threads;
  int shared = 0;    // bytes that are asked for at the launch
  int resident = 0;  // blocks that a processor has to have room for; 0: as it comes
};

// Parameters: the buffers (a pointer, or the value itself), the numbers as int (long long when `wide`), and, when there
// is a workspace, a pointer to it.
struct KernelSource {
  std::string text;
  std::vector<ir::Sym> numbers;
  std::vector<KernelLaunch> launches;
  bool has_workspace = false;
  ir::Sym workspace = 0;       // bytes
  std::vector<int> alignment;  // per buffer: what its first byte's address has to be a multiple of
  bool wide = false;
  int part_bytes = 0;  // of the table of a kernel of many parts
};

// What a launch may be given as parameters, with room for the number of parts.
inline constexpr int kTableBytes = 4096 - 16;

// `by_value`: per buffer, whether it is a number that comes as a parameter.
KernelSource emit_kernel(const codegen::Kernel& kernel, const Schedule& schedule, const std::vector<bool>& by_value);

// The same element-wise kernel on many parts in one launch. Its parameter is a table: per part the buffers (8 bytes
// each: a pointer, or the value itself), the numbers (int), the first of its blocks; behind kTableBytes, how many there
// are. `launches[0].blocks`: of one part.
KernelSource emit_multi_kernel(const codegen::Kernel& kernel, const Schedule& schedule,
                               const std::vector<bool>& by_value);

}  // namespace graphlift::cuda
