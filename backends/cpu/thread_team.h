// Owns: sharing units of work between torch's own threads: the OpenMP runtime that torch brought into the process,
// asked for by name, since at::parallel_for is compiled into its callers and would need that runtime at build time.
// Must not: start threads of its own.
#pragma once

#include <cstdint>

namespace graphlift::cpu {

// `work(context, begin, end)` for parts of [0, units), each of `grain` units or more, on at most at::get_num_threads()
// threads; on the caller alone inside a parallel region, or where torch has no OpenMP. `work` must not throw.
void share_units(int64_t units, int64_t grain, void (*work)(void* context, int64_t begin, int64_t end), void* context);

}  // namespace graphlift::cpu
