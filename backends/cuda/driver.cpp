// Owns: see driver.h.
#include "backends/cuda/driver.h"

#include <c10/util/Exception.h>
#include <dlfcn.h>

#include <map>
#include <mutex>

namespace graphlift::cuda {
namespace {

constexpr int kOldestDriver = 12000;  // libraries that belong to no context
constexpr int kProcessors = 16, kProcessorThreads = 39, kMajor = 75, kMinor = 76,
              kSharedBytes = 97;  // CUdevice_attribute

std::string load(Driver* driver) {
  void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
  if (!library) return "no driver of CUDA is installed";
  bool whole = true;
#define FUNCTION(name, parameters)                                           \
  driver->name = reinterpret_cast<int(*) parameters>(dlsym(library, #name)); \
  whole = whole && driver->name;
  GRAPHLIFT_CUDA_DRIVER(FUNCTION)
#undef FUNCTION
  if (!driver->cuInit || driver->cuInit(0) != 0) return "CUDA's driver does not start: there is no GPU";
  int version = 0;
  driver->cuDriverGetVersion(&version);
  if (!whole || version < kOldestDriver)
    return "the driver is of CUDA " + std::to_string(version / 1000) + "; 12.0 is the oldest that kernels are made for";
  return "";
}

DeviceFacts find_facts(int device) {
  DeviceFacts facts;
  facts.refusal = driver().refusal;
  if (!facts.refusal.empty()) return facts;
  int handle = 0, major = 0, minor = 0;
  const bool known = driver().cuDeviceGet(&handle, device) == 0 &&
                     driver().cuDeviceGetAttribute(&major, kMajor, handle) == 0 &&
                     driver().cuDeviceGetAttribute(&minor, kMinor, handle) == 0 &&
                     driver().cuDeviceGetAttribute(&facts.processors, kProcessors, handle) == 0 &&
                     driver().cuDeviceGetAttribute(&facts.processor_threads, kProcessorThreads, handle) == 0 &&
                     driver().cuDeviceGetAttribute(&facts.shared_bytes, kSharedBytes, handle) == 0 &&
                     driver().cuDevicePrimaryCtxRetain(&facts.context, handle) == 0;
  if (!known) facts.refusal = "there is no GPU " + std::to_string(device);
  facts.architecture = 10 * major + minor;
  if (known && facts.architecture < 70) facts.refusal = "the GPU is older than compute capability 7.0";
  return facts;
}

}  // namespace

const Driver& driver() {
  static const Driver* driver = [] {
    auto* made = new Driver;
    made->refusal = load(made);
    return made;
  }();
  return *driver;
}

void check_driver(int result, const char* what) {
  if (result == 0) return;
  const char* words = nullptr;
  driver().cuGetErrorString(result, &words);
  TORCH_CHECK(false, "CUDA error in a kernel of graphlift (", what, "): ", words ? words : "unknown");
}

const DeviceFacts& device_facts(int device) {
  static std::mutex mutex;
  static auto* known = new std::map<int, DeviceFacts>;
  const std::lock_guard lock(mutex);
  auto found = known->find(device);
  if (found == known->end()) found = known->emplace(device, find_facts(device)).first;
  return found->second;
}

}  // namespace graphlift::cuda
