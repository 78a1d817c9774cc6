// Owns: a GPU's language for a C++ compiler: a kernel as a function of one thread that waits for the others of its
// block at barriers and shuffles. Included before each kernel's text; emulated_driver.cpp runs what comes out.
#pragma once

#include <math.h>
#include <string.h>

#include <type_traits>
#include <utility>
#include <vector>

#define GL_CONVERSIONS
#define __global__
#define __device__
#define __shared__ static
#define __launch_bounds__(...)
#define GL_CONSTANT
#define GL_SHARED(name, bytes) alignas(16) static unsigned char name[bytes]

struct emulated_place {
  unsigned x, y, z;
};
struct emulated_state {
  emulated_place thread, block;
  void (*wait)(int kind);  // 1: a barrier, 2: a shuffle
  // Values on their way between threads; a thread is at most one shuffle ahead of another.
  unsigned long long values[2][1024];
  unsigned char turn[1024];
};
extern "C" emulated_state* emulated;  // the driver's
#define threadIdx (emulated->thread)
#define blockIdx (emulated->block)

inline void __syncthreads() { emulated->wait(1); }
template <class T>
T __shfl_xor_sync(unsigned, T x, int mask) {
  const unsigned me = threadIdx.x;
  const int turn = emulated->turn[me] ^= 1;
  memcpy(&emulated->values[turn][me], &x, sizeof x);
  emulated->wait(2);
  memcpy(&x, &emulated->values[turn][me ^ static_cast<unsigned>(mask)], sizeof x);
  return x;
}

template <class To, class From>
To emulated_bits(From from) {
  To to;
  memcpy(&to, &from, sizeof to);
  return to;
}
inline float __int_as_float(int x) { return emulated_bits<float>(x); }
inline float __uint_as_float(unsigned x) { return emulated_bits<float>(x); }
inline unsigned __float_as_uint(float x) { return emulated_bits<unsigned>(x); }
inline unsigned __umulhi(unsigned a, unsigned b) {
  return static_cast<unsigned>((static_cast<unsigned long long>(a) * b) >> 32);
}
inline double __longlong_as_double(long long x) { return emulated_bits<double>(x); }

// Copies take place when they are waited for, and no sooner.
struct emulated_copy {
  void* to;
  const void* from;
  size_t bytes;
};
inline std::vector<std::vector<emulated_copy>>& emulated_copies() {
  static std::vector<std::vector<emulated_copy>> groups[1024];
  auto& own = groups[threadIdx.x];
  if (own.empty()) own.emplace_back();
  return own;
}
template <int n, class T>
void gl_copy_ahead(T* to, const T* from) {
  emulated_copies().back().push_back({to, from, n * sizeof(T)});
}
inline void gl_copies_close() { emulated_copies().emplace_back(); }
template <int left>
void gl_copies_wait() {
  auto& groups = emulated_copies();
  while (groups.size() > left + 1) {
    for (const auto& copy : groups.front()) memcpy(copy.to, copy.from, copy.bytes);
    groups.erase(groups.begin());
  }
}

inline float gl_exp_nearly(float x) { return expf(x); }
inline float gl_inverse_nearly(float x) { return 1.0f / x; }
inline float gl_div_nearly(float a, float b) { return a / b; }

struct gl_bf16;
struct gl_f16;
template <class T = gl_bf16>
T gl_to_bf16(float x) {
  const unsigned raw = __float_as_uint(x);
  T r;
  r.bits = x != x ? 0x7fc0 : static_cast<unsigned short>((raw + 0x7fff + ((raw >> 16) & 1)) >> 16);
  return r;
}
template <class T = gl_f16>
T gl_to_f16(float x) {
  T r;
  r.bits = emulated_bits<unsigned short>(static_cast<_Float16>(x));
  return r;
}
template <class T>
float gl_from_f16(T x) {
  return static_cast<float>(emulated_bits<_Float16>(x.bits));
}

template <class... Args, size_t... i>
void emulated_call(void (*kernel)(Args...), void** arguments, std::index_sequence<i...>) {
  kernel(*static_cast<std::remove_reference_t<Args>*>(arguments[i])...);
}
template <class... Args>
void emulated_call(void (*kernel)(Args...), void** arguments) {
  emulated_call(kernel, arguments, std::index_sequence_for<Args...>());
}
