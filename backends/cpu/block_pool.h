// Owns: large blocks of memory for results, kept between runs: fresh pages cost more than most kernels that fill them.
// What is kept and what is in use together never exceed what was in use at most. Must not: serve small blocks.
#pragma once

#include <c10/core/Allocator.h>

namespace graphlift::cpu {

// Blocks below this come from torch's allocator, which keeps them itself.
inline constexpr size_t kPooledBytes = size_t{1} << 16;

// For sizes of kPooledBytes and more; thread-safe; lives as long as the process.
c10::Allocator* block_pool();
void empty_block_pool();  // gives back what is kept

}  // namespace graphlift::cpu
