// Owns: see cuda_prelude.h.
#include "backends/cuda/cuda_prelude.h"

namespace graphlift::cuda {
namespace {

// GL_CONVERSIONS: a compiler for another machine brings its own.
constexpr std::string_view kPrelude = R"cuda(
#ifndef GL_SHARED
#define GL_SHARED(name, bytes) extern __shared__ __align__(16) unsigned char name[]
#define GL_CONSTANT __grid_constant__
#endif
struct gl_bf16 { unsigned short bits; };
struct gl_f16 { unsigned short bits; };
struct gl_bool { unsigned char bits; };
#ifndef GL_CONVERSIONS
__device__ inline gl_bf16 gl_to_bf16(float x) {
  gl_bf16 r;
#if __CUDA_ARCH__ >= 800
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(r.bits) : "f"(x));
#else
  const unsigned raw = __float_as_uint(x);
  r.bits = x != x ? 0x7fc0 : (raw + 0x7fff + ((raw >> 16) & 1)) >> 16;
#endif
  return r;
}
__device__ inline gl_f16 gl_to_f16(float x) {
  gl_f16 r;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(r.bits) : "f"(x));
  return r;
}
__device__ inline float gl_from_f16(gl_f16 x) {
  float r;
  asm("cvt.f32.f16 %0, %1;" : "=f"(r) : "h"(x.bits));
  return r;
}
__device__ inline float gl_exp_nearly(float x) {
  float r;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(x * 1.44269504f));
  return r;
}
__device__ inline float gl_inverse_nearly(float x) {
  float r;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(x));
  return r;
}
__device__ inline float gl_div_nearly(float a, float b) {
  float r;
  asm("div.full.f32 %0, %1, %2;" : "=f"(r) : "f"(a), "f"(b));
  return r;
}
#endif
__device__ inline float gl_up(gl_bf16 x) { return __uint_as_float((unsigned)x.bits << 16); }
__device__ inline float gl_up(gl_f16 x) { return gl_from_f16(x); }
__device__ inline bool gl_up(gl_bool x) { return x.bits != 0; }
template <class T> __device__ inline T gl_up(T x) { return x; }
template <class T> struct gl_down { static __device__ inline T of(T x) { return x; } };
template <> struct gl_down<gl_bf16> { static __device__ inline gl_bf16 of(float x) { return gl_to_bf16(x); } };
template <> struct gl_down<gl_f16> { static __device__ inline gl_f16 of(float x) { return gl_to_f16(x); } };
template <> struct gl_down<gl_bool> {
  static __device__ inline gl_bool of(bool x) { gl_bool r; r.bits = x; return r; }
};

template <int n, class T> struct gl_vector {
  static constexpr int bytes = n * (int)sizeof(T) < 16 ? n * (int)sizeof(T) : 16;
  static constexpr int items = bytes / (int)sizeof(T);
  struct alignas(bytes) Pack { T item[items]; };
};
template <int n, class T, class C> __device__ inline void gl_load(const T* from, C* to) {
  using V = gl_vector<n, T>;
#pragma unroll
  for (int k = 0; k < n / V::items; ++k) {
    const typename V::Pack pack = ((const typename V::Pack*)from)[k];
#pragma unroll
    for (int j = 0; j < V::items; ++j) to[k * V::items + j] = gl_up(pack.item[j]);
  }
}
template <int n, class T, class C> __device__ inline void gl_store(T* to, const C* from) {
  using V = gl_vector<n, T>;
#pragma unroll
  for (int k = 0; k < n / V::items; ++k) {
    typename V::Pack pack;
#pragma unroll
    for (int j = 0; j < V::items; ++j) pack.item[j] = gl_down<T>::of(from[k * V::items + j]);
    ((typename V::Pack*)to)[k] = pack;
  }
}

template <class T> __device__ inline T gl_least(T a, T b) { return a < b || a != a ? a : b; }
template <class T> __device__ inline T gl_most(T a, T b) { return a > b || a != a ? a : b; }
#if !defined(GL_CONVERSIONS) && __CUDA_ARCH__ >= 800
__device__ inline float gl_least(float a, float b) {
  float r;
  asm("min.NaN.f32 %0, %1, %2;" : "=f"(r) : "f"(a), "f"(b));
  return r;
}
__device__ inline float gl_most(float a, float b) {
  float r;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(r) : "f"(a), "f"(b));
  return r;
}
#endif
template <class T> __device__ inline T gl_power(T base, T exponent) {
  if (exponent < 0) return base == 1 ? 1 : base == -1 ? ((exponent & 1) ? -1 : 1) : 0;
  unsigned long long result = 1, square = (unsigned long long)base;
  for (unsigned long long left = (unsigned long long)exponent; left; left >>= 1, square *= square)
    if (left & 1) result *= square;
  return (T)result;
}
struct gl_sum { template <class T> static __device__ inline T of(T a, T b) { return a + b; } };
struct gl_prod { template <class T> static __device__ inline T of(T a, T b) { return a * b; } };
struct gl_min { template <class T> static __device__ inline T of(T a, T b) { return gl_least(a, b); } };
struct gl_max { template <class T> static __device__ inline T of(T a, T b) { return gl_most(a, b); } };
struct gl_any { template <class T> static __device__ inline T of(T a, T b) { return a || b; } };
struct gl_all { template <class T> static __device__ inline T of(T a, T b) { return a && b; } };

__device__ inline double gl_exp(double x) { return exp(x); }
__device__ inline double gl_tanh(double x) { return tanh(x); }
__device__ inline double gl_sigmoid(double x) { return 1 / (1 + exp(-x)); }
__device__ inline double gl_erf(double x) { return erf(x); }
__device__ inline double gl_div(double a, double b) { return a / b; }
#ifdef GL_NEARLY  // some units in the last place off, for results of 16 bits
__device__ inline float gl_exp(float x) { return gl_exp_nearly(x); }
__device__ inline float gl_div(float a, float b) { return gl_div_nearly(a, b); }
__device__ inline float gl_sigmoid(float x) { return gl_inverse_nearly(1.0f + gl_exp_nearly(-x)); }
__device__ inline float gl_tanh(float x) {
  const float square = x * x;
  const float small = x * fmaf(square, fmaf(square, 0.13333333f, -0.33333333f), 1.0f);
  const float large = fmaf(-2.0f, gl_inverse_nearly(1.0f + gl_exp_nearly(2.0f * x)), 1.0f);
  return square < 0.01f ? small : large;
}
// Abramowitz and Stegun, 7.1.26; small ones by their series.
__device__ inline float gl_erf(float x) {
  const float size = fabsf(x), square = x * x, t = gl_inverse_nearly(fmaf(0.3275911f, size, 1.0f));
  float sum = fmaf(t, 1.061405429f, -1.453152027f);
  sum = fmaf(t, fmaf(t, fmaf(t, sum, 1.421413741f), -0.284496736f), 0.254829592f);
  const float large = copysignf(fmaf(-t * sum, gl_exp_nearly(-square), 1.0f), x);
  const float small = x * fmaf(square, fmaf(square, 0.112837917f, -0.376126389f), 1.128379167f);
  return square < 0.01f ? small : large;
}
#else
__device__ inline float gl_erf(float x) { return erff(x); }
__device__ inline float gl_exp(float x) { return expf(x); }
__device__ inline float gl_div(float a, float b) { return a / b; }
__device__ inline float gl_sigmoid(float x) { return 1.0f / (1.0f + expf(-x)); }
__device__ inline float gl_tanh(float x) { return tanhf(x); }
#endif
// A sum of exp(x - own), as one of exp(x - most).
template <class T> __device__ inline T gl_rescaled(T sum, T own, T most) {
  return sum * gl_exp(own == most ? 0 : own - most);
}
// Adds elements to the maximum so far and to the sum of exp(x - maximum). Until there is one above -inf, the sum is 0.
template <int n, class T> __device__ inline void gl_add_exponentials(const T* x, T& most, T& sum) {
  T next = most;
#pragma unroll
  for (int j = 0; j < n; ++j) next = gl_most(next, x[j]);
  sum = gl_rescaled(sum, most, next);
  most = next;
  const T shift = most == -(T)__int_as_float(0x7f800000) ? 0 : most;
#pragma unroll
  for (int j = 0; j < n; ++j) sum += gl_exp(x[j] - shift);
}

// Philox with 10 rounds, as cuRAND has it.
struct gl_random { unsigned x, y, z, w; };
__device__ inline gl_random gl_philox(unsigned long long seed, unsigned long long counter, unsigned long long sequence) {
  gl_random c = {(unsigned)counter, (unsigned)(counter >> 32), (unsigned)sequence, (unsigned)(sequence >> 32)};
  unsigned a = (unsigned)seed, b = (unsigned)(seed >> 32);
#pragma unroll
  for (int round = 0; round < 10; ++round) {
    c = {__umulhi(0xCD9E8D57u, c.z) ^ c.y ^ a, 0xCD9E8D57u * c.z, __umulhi(0xD2511F53u, c.x) ^ c.w ^ b, 0xD2511F53u * c.x};
    a += 0x9E3779B9u;
    b += 0xBB67AE85u;
  }
  return c;
}
// Within a recording (0 or more) seed and offset are addresses.
__device__ inline unsigned long long gl_seed(long long seed, long long within) {
  return (unsigned long long)(within < 0 ? seed : *(const long long*)seed);
}
__device__ inline unsigned long long gl_call(long long offset, long long within) {
  return (unsigned long long)(within < 0 ? offset : *(const long long*)offset + within) / 4;
}
// The number in (0, 1] that torch's kernel draws for the element at a place: its thread takes `vector` elements at once,
// or, where that is 1, every threads-th. Of `lane` more elements, which share one draw, so that the compiler makes it
// once. `first`: the number of the kernel's first draw.
__device__ inline float gl_uniform(unsigned long long seed, unsigned long long first, long long at, long long threads,
                                   long long vector, int lane) {
  const uidx place = (uidx)at, own = (uidx)vector, group = place / own, thread = group % (uidx)threads;
  uidx call = group / (uidx)threads, part = place % own;
  if (own == 1) part = call % 4, call /= 4;
  if (own > 4) call = call * (own / 4) + part / 4, part %= 4;
  const gl_random drawn = gl_philox(seed, first + call, thread);
  part += lane;
  const unsigned bits = part == 0 ? drawn.x : part == 1 ? drawn.y : part == 2 ? drawn.z : drawn.w;
  return fmaf((float)bits, 0x1p-32f, 0x1p-33f);
}

__device__ inline float gl_other(float x, int mask) { return __shfl_xor_sync(0xffffffffu, x, mask); }
__device__ inline double gl_other(double x, int mask) { return __shfl_xor_sync(0xffffffffu, x, mask); }
__device__ inline long long gl_other(long long x, int mask) { return __shfl_xor_sync(0xffffffffu, x, mask); }
template <class T> __device__ inline T gl_other(T x, int mask) { return (T)__shfl_xor_sync(0xffffffffu, (int)x, mask); }

// Joins the values of `across` neighbouring threads; each gets the result.
template <class Op, int across, class T> __device__ inline T gl_across(T x) {
#pragma unroll
  for (int mask = across / 2; mask > 0; mask /= 2) x = Op::of(x, gl_other(x, mask));
  return x;
}
// Joins the values of all threads of a block, with a barrier between the two. `room`: a value per warp, used by nobody
// since the last barrier.
template <class Op, class T> __device__ inline void gl_block_leave(T x, T* room) {
  x = gl_across<Op, 32>(x);
  if (threadIdx.x % 32 == 0) room[threadIdx.x / 32] = x;
}
template <class Op, int threads, class T> __device__ inline void gl_block_join(T& x, const T* room) {
  x = gl_across<Op, threads / 32>(room[threadIdx.x % (threads / 32)]);
}
// Of two values at once: the lower half of each warp joins the first, the upper half the second. `room`: of two.
template <class Op, class T> __device__ inline void gl_block_leave(T a, T b, T* room) {
  const bool upper = threadIdx.x & 16;
  const T other = gl_other(upper ? a : b, 16);
  const T x = gl_across<Op, 16>(Op::of(upper ? b : a, other));
  if (threadIdx.x % 16 == 0) room[(upper ? 32 : 0) + threadIdx.x / 32] = x;
}
template <class Op, int threads, class T> __device__ inline void gl_block_join(T& a, T& b, const T* room) {
  constexpr int warps = threads / 32, own = warps < 16 ? warps : 16;
  const bool upper = threadIdx.x & 16;
  const T* from = room + (upper ? 32 : 0) + threadIdx.x % own;
  T x = from[0];
  if (warps > 16) x = Op::of(x, from[warps - own]);
  x = gl_across<Op, own>(x);
  const T other = gl_other(x, 16);
  a = upper ? other : x;
  b = upper ? x : other;
}
// Copies that the GPU makes while a thread goes on; `wait` waits for all groups but the last `left` that were closed.
#ifndef GL_CONVERSIONS
template <int n, class T> __device__ inline void gl_copy_ahead(T* to, const T* from) {
#if __CUDA_ARCH__ >= 800
  constexpr int all = n * (int)sizeof(T), bytes = all < 16 ? all : 16;
#pragma unroll
  for (int at = 0; at < all; at += bytes) {
    const unsigned place = (unsigned)__cvta_generic_to_shared((char*)to + at);
    if (bytes == 16)
      asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(place), "l"((const char*)from + at) : "memory");
    else
      asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(place), "l"((const char*)from + at), "n"(bytes)
                   : "memory");
  }
#endif
}
__device__ inline void gl_copies_close() {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}
template <int left> __device__ inline void gl_copies_wait() {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.wait_group %0;" ::"n"(left) : "memory");
#endif
}
#endif
// Joins the values of threads `across` apart, lane by lane; each gets the results. First those of a warp, then one value
// per warp and column, which are spread over all threads. `room`: a value per thread and lane.
template <class Op, int across, int threads, int lanes, class T> __device__ inline void gl_down_columns(T* x, T* room) {
  constexpr int wide = across < 32 ? 32 : across, all = lanes * across;
#pragma unroll
  for (int mask = 16; mask >= across; mask /= 2) {
#pragma unroll
    for (int j = 0; j < lanes; ++j) x[j] = Op::of(x[j], gl_other(x[j], mask));
  }
  const int column = threadIdx.x % across, group = threadIdx.x / wide;
  __syncthreads();
  if (threadIdx.x % wide < across) {
#pragma unroll
    for (int j = 0; j < lanes; ++j) room[group * all + j * across + column] = x[j];
  }
  __syncthreads();
  for (int i = threadIdx.x; i < all; i += threads) {
    T sum = room[i];
#pragma unroll
    for (int other = 1; other < threads / wide; ++other) sum = Op::of(sum, room[other * all + i]);
    room[i] = sum;
  }
  __syncthreads();
#pragma unroll
  for (int j = 0; j < lanes; ++j) x[j] = room[j * across + column];
}
)cuda";

}  // namespace

std::string_view cuda_prelude() { return kPrelude; }

}  // namespace graphlift::cuda
