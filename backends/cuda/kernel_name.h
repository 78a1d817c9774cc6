// Owns: what a generated kernel is called, which is what profilers show of it. Must not: tell kernels apart; content
// does.
#pragma once

#include <string>

#include "backends/codegen/kernel.h"
#include "backends/cuda/schedule.h"

namespace graphlift::cuda {

// How its threads lie, results and elements of each, and some of what it computes:
// "gl_columns_64x262144_sub_mul_sum_0".
std::string kernel_name(const codegen::Kernel& kernel, const Schedule& schedule, int launch);

}  // namespace graphlift::cuda
