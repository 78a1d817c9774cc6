// Owns: the driver's functions over emulated kernels: blocks one after another, the threads of a block as fibers that
// run from wait to wait. Threads that wait for different things are a bug of the kernel: the process stops.
#include <dlfcn.h>
#include <sys/mman.h>
#include <ucontext.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string>
#include <vector>

#include "emulated_device.h"

namespace {

constexpr size_t kStack = 256 * 1024;

struct Function {
  void (*call)(void**);
  bool together;
};

struct Fiber {
  ucontext_t context;
  int waits = 0;  // -1: done
};

emulated_state state = {};
ucontext_t scheduler;
std::vector<Fiber> fibers;
size_t current;
const Function* running;
void** arguments;

void wait(int kind) {
  fibers[current].waits = kind;
  swapcontext(&fibers[current].context, &scheduler);
}

void run_fiber() {
  running->call(arguments);
  fibers[current].waits = -1;
  swapcontext(&fibers[current].context, &scheduler);
}

char* stack_of(size_t fiber) {
  static char* all = static_cast<char*>(
      mmap(nullptr, 1024 * kStack, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
  return all + fiber * kStack;
}

void run_together(unsigned threads) {
  fibers.resize(threads);
  for (unsigned i = 0; i < threads; ++i) {
    fibers[i].waits = 0;
    getcontext(&fibers[i].context);
    fibers[i].context.uc_stack = {stack_of(i), 0, kStack};
    fibers[i].context.uc_link = nullptr;
    makecontext(&fibers[i].context, run_fiber, 0);
  }
  for (bool more = true; more;) {
    for (current = 0; current < threads; ++current) {
      if (fibers[current].waits < 0) continue;
      state.thread.x = static_cast<unsigned>(current);
      swapcontext(&scheduler, &fibers[current].context);
    }
    more = fibers[0].waits >= 0;
    for (const Fiber& fiber : fibers) {
      if (fiber.waits == fibers[0].waits) continue;
      std::fprintf(stderr, "threads of a block wait for different things\n");
      std::abort();
    }
  }
}

}  // namespace

extern "C" {

emulated_state* emulated = &state;

int cuInit(unsigned) { return 0; }
int cuDriverGetVersion(int* version) {
  *version = 13000;
  return 0;
}
int cuDeviceGet(int* handle, int device) {
  *handle = device;
  return 0;
}
int cuDeviceGetAttribute(int* value, int attribute, int) {
  constexpr int kProcessorThreads = 39, kMajor = 75, kMinor = 76, kSharedBytes = 97;
  *value = attribute == kMajor              ? 9
           : attribute == kMinor            ? 0
           : attribute == kSharedBytes      ? 227 << 10
           : attribute == kProcessorThreads ? 2048
                                            : 4;
  return 0;
}
int cuDeviceGetCount(int* count) {
  *count = 1;
  return 0;
}
int cuDevicePrimaryCtxRetain(void** context, int) {
  *context = &state;
  return 0;
}
int cuCtxGetCurrent(void** context) {
  *context = &state;
  return 0;
}
int cuCtxSetCurrent(void*) { return 0; }

int cuLibraryLoadData(void** library, const void* code, const int*, void**, unsigned, const int*, void**, unsigned) {
  *library = dlopen(static_cast<const char*>(code), RTLD_NOW | RTLD_LOCAL);
  if (!*library) std::fprintf(stderr, "%s\n", dlerror());
  return *library ? 0 : 200;
}

int cuLibraryGetKernel(void** kernel, void* library, const char* name) {
  auto* made = new Function;
  made->call = reinterpret_cast<void (*)(void**)>(dlsym(library, (std::string(name) + "_call").c_str()));
  const auto* together = static_cast<int*>(dlsym(library, (std::string(name) + "_together").c_str()));
  if (!made->call || !together) return 500;
  made->together = *together;
  *kernel = made;
  return 0;
}

int cuLaunchKernel(void* kernel, unsigned x, unsigned y, unsigned z, unsigned threads, unsigned, unsigned, unsigned,
                   void*, void** parameters, void**) {
  static std::mutex mutex;
  if (x == 0 || y == 0 || y > 65535 || z != 1 || threads == 0 || threads > 1024) return 1;
  const std::lock_guard lock(mutex);
  running = static_cast<const Function*>(kernel);
  arguments = parameters;
  state.wait = wait;
  for (unsigned split = 0; split < y; ++split) {
    for (unsigned block = 0; block < x; ++block) {
      state.block = {block, split, 0};
      state.thread = {0, 0, 0};
      if (running->together) {
        run_together(threads);
        continue;
      }
      for (state.thread.x = 0; state.thread.x < threads; ++state.thread.x) running->call(parameters);
    }
  }
  return 0;
}

int cuKernelSetAttribute(int, int, void*, int) { return 0; }

int cuStreamIsCapturing(void*, int* capturing) {
  *capturing = 0;
  return 0;
}

int cuMemcpyDtoDAsync_v2(uint64_t to, uint64_t from, size_t bytes, void*) {
  memcpy(reinterpret_cast<void*>(to), reinterpret_cast<const void*>(from), bytes);
  return 0;
}

int cuDeviceGetName(char* name, int length, int) {
  std::snprintf(name, static_cast<size_t>(length), "an emulated GPU");
  return 0;
}

int cuEventCreate(void** event, unsigned) {
  *event = new std::chrono::steady_clock::time_point;
  return 0;
}
int cuEventDestroy_v2(void* event) {
  delete static_cast<std::chrono::steady_clock::time_point*>(event);
  return 0;
}
int cuEventRecord(void* event, void*) {
  *static_cast<std::chrono::steady_clock::time_point*>(event) = std::chrono::steady_clock::now();
  return 0;
}
int cuEventSynchronize(void*) { return 0; }
int cuEventElapsedTime(float* milliseconds, void* start, void* end) {
  const std::chrono::duration<float, std::milli> passed = *static_cast<std::chrono::steady_clock::time_point*>(end) -
                                                          *static_cast<std::chrono::steady_clock::time_point*>(start);
  *milliseconds = passed.count();
  return 0;
}

int cuGetErrorString(int, const char** words) {
  *words = "an emulated error";
  return 0;
}
}
