// Owns: see thread_team.h.
#include "backends/cpu/thread_team.h"

#include <ATen/Parallel.h>
#include <dlfcn.h>

#include <algorithm>

#include "base/log.h"

namespace graphlift::cpu {
namespace {

// GNU's interface, which LLVM's runtime offers as well.
struct Runtime {
  void (*parallel)(void (*body)(void*), void* data, unsigned threads, unsigned flags) = nullptr;
  int (*thread)() = nullptr;
  int (*threads)() = nullptr;
};

const Runtime& runtime() {
  static const Runtime runtime = [] {
    Runtime found;
    found.parallel = reinterpret_cast<decltype(found.parallel)>(dlsym(RTLD_DEFAULT, "GOMP_parallel"));
    found.thread = reinterpret_cast<decltype(found.thread)>(dlsym(RTLD_DEFAULT, "omp_get_thread_num"));
    found.threads = reinterpret_cast<decltype(found.threads)>(dlsym(RTLD_DEFAULT, "omp_get_num_threads"));
    if (!found.parallel || !found.thread || !found.threads)
      log(Artifact::PerfHints, "no OpenMP runtime is found in the process: kernels run on one thread");
    return found;
  }();
  return runtime;
}

struct Share {
  int64_t units;
  void (*work)(void*, int64_t, int64_t);
  void* context;
};

// One thread's part, in the order of the threads.
void run_part(void* data) {
  const Share& share = *static_cast<const Share*>(data);
  const int64_t threads = runtime().threads(), thread = runtime().thread();
  const int64_t part = (share.units + threads - 1) / threads;
  const int64_t begin = thread * part, end = std::min(share.units, begin + part);
  if (begin < end) share.work(share.context, begin, end);
}

}  // namespace

void share_units(int64_t units, int64_t grain, void (*work)(void*, int64_t, int64_t), void* context) {
  if (units <= grain) return work(context, 0, units);
  const int64_t wanted = std::min<int64_t>(at::get_num_threads(), (units + grain - 1) / grain);
  const Runtime& found = runtime();
  if (wanted < 2 || at::in_parallel_region() || !found.parallel || !found.thread || !found.threads)
    return work(context, 0, units);
  Share share{units, work, context};
  found.parallel(run_part, &share, static_cast<unsigned>(wanted), 0);
}

}  // namespace graphlift::cpu
