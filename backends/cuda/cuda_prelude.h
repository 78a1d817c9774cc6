// Owns: the text that comes before every kernel: types of memory, conversions, vector access, and how the threads of a
// block join values. Must not: need a header of CUDA.
#pragma once

#include <string_view>

namespace graphlift::cuda {

std::string_view cuda_prelude();

}  // namespace graphlift::cuda
