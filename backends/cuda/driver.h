// Owns: the functions of the CUDA driver that are used, found in libcuda at run time. No header of CUDA is needed.
// Must not: know kernels' sources.
#pragma once

#include <cstdint>
#include <string>

namespace graphlift::cuda {

// FUNCTION(name, parameters): what libcuda exports. Handles are pointers, devices ints, results 0 when all is well.
#define GRAPHLIFT_CUDA_DRIVER(FUNCTION)                                                                          \
  FUNCTION(cuInit, (unsigned))                                                                                   \
  FUNCTION(cuDriverGetVersion, (int*))                                                                           \
  FUNCTION(cuDeviceGet, (int*, int))                                                                             \
  FUNCTION(cuDeviceGetAttribute, (int*, int, int))                                                               \
  FUNCTION(cuDevicePrimaryCtxRetain, (void**, int))                                                              \
  FUNCTION(cuCtxGetCurrent, (void**))                                                                            \
  FUNCTION(cuCtxSetCurrent, (void*))                                                                             \
  FUNCTION(cuLibraryLoadData, (void**, const void*, const int*, void**, unsigned, const int*, void**, unsigned)) \
  FUNCTION(cuLibraryGetKernel, (void**, void*, const char*))                                                     \
  FUNCTION(cuDeviceGetCount, (int*))                                                                             \
  FUNCTION(cuKernelSetAttribute, (int, int, void*, int))                                                         \
  FUNCTION(cuLaunchKernel,                                                                                       \
           (void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void*, void**, void**)) \
  FUNCTION(cuStreamIsCapturing, (void*, int*))                                                                   \
  FUNCTION(cuDeviceGetName, (char*, int, int))                                                                   \
  FUNCTION(cuEventCreate, (void**, unsigned))                                                                    \
  FUNCTION(cuEventDestroy_v2, (void*))                                                                           \
  FUNCTION(cuEventRecord, (void*, void*))                                                                        \
  FUNCTION(cuEventSynchronize, (void*))                                                                          \
  FUNCTION(cuEventElapsedTime, (float*, void*, void*))                                                           \
  FUNCTION(cuMemcpyDtoDAsync_v2, (uint64_t, uint64_t, size_t, void*))                                            \
  FUNCTION(cuGetErrorString, (int, const char**))

struct Driver {
#define FUNCTION(name, parameters) int(*name) parameters = nullptr;
  GRAPHLIFT_CUDA_DRIVER(FUNCTION)
#undef FUNCTION
  std::string refusal;  // why it can't be used; empty: it can
};

const Driver& driver();  // loaded once
// Throws what torch throws for its own errors of CUDA.
void check_driver(int result, const char* what);

struct DeviceFacts {
  int architecture = 0;  // 10 * major + minor
  int processors = 0;
  int processor_threads = 0;  // at once, at most
  int shared_bytes = 0;       // memory that the threads of one block may share
  void* context = nullptr;    // the primary one, which torch uses
  std::string refusal;
};

const DeviceFacts& device_facts(int device);

}  // namespace graphlift::cuda
