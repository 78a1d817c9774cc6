// Owns: see cublaslt.h.
#include "backends/cuda/cublaslt.h"

#include <dlfcn.h>

#include "base/once.h"

namespace graphlift::cuda {
namespace {

constexpr const char* kCublasLtNames[] = {"libcublasLt.so.13", "libcublasLt.so.12"};

// Torch's own is in the process already; another one would be a second library with state of its own.
void* open_cublaslt() {
  for (const char* name : kCublasLtNames)
    if (void* library = dlopen(name, RTLD_NOW | RTLD_NOLOAD)) return library;
  return nullptr;
}

std::string load(CublasLt* made) {
  void* library = open_cublaslt();
  if (!library) return "torch has loaded no cuBLASLt";
  bool whole = true;
#define FUNCTION(name, parameters)                                         \
  made->name = reinterpret_cast<int(*) parameters>(dlsym(library, #name)); \
  whole = whole && made->name;
  GRAPHLIFT_CUBLASLT(FUNCTION)
#undef FUNCTION
  const auto version = reinterpret_cast<size_t (*)()>(dlsym(library, "cublasLtGetVersion"));
  if (!whole || !version) return "this cuBLASLt lacks a function";
  made->version = version();
  return "";
}

}  // namespace

const CublasLt& cublaslt() {
  static constinit Once<CublasLt> once;
  return once.get([] {
    CublasLt made;
    made.refusal = load(&made);
    return made;
  });
}

}  // namespace graphlift::cuda
