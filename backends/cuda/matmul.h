// Owns: a matrix product on a GPU as data (MatmulSpec), the interface of its implementations, and the process-wide
// cache of those that were made for a spec. Must not: know graphs.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "ir/type.h"

namespace graphlift::cuda {

// In elements: from a matrix to the next one (0: the same for all), from a row to the next one, from a column.
struct MatrixLayout {
  int64_t batch = 0, row = 0, column = 1;
  bool operator==(const MatrixLayout&) const = default;
};

enum class Activation : uint8_t {
  None,
  Relu,
  Gelu,          // by tanh
  GeluKept,      // the same; what it is taken of is stored as `aux`
  GeluBackward,  // times gelu's derivative at `aux`
};

// What torch's settings say of a product's inner precision.
enum class Policy : uint8_t {
  Exact,
  Relaxed,  // float32: TF32; 16 bits: parts of a sum may be added in 16 bits
  Whole,    // of 16 bits: no sum in parts
  Torchs,   // only torch's own kernels do what is asked for
};

// D[batch, m, n] = activation(alpha * A[batch, m, k] @ B[batch, k, n] + beta * C + bias[n]), accumulated in float32 for
// dtypes below that. C is not read when beta is 0.
struct MatmulSpec {
  ir::DType dtype = ir::DType::float32;  // of A, B, bias and aux
  ir::DType out = ir::DType::float32;    // of C and D
  ir::Device device;
  int64_t batch = 1, m = 0, n = 0, k = 0;
  MatrixLayout a, b, c, d, aux;
  double alpha = 1, beta = 0;
  bool bias = false;  // n numbers without gaps
  bool sums = false;  // the sums of A's rows, m numbers without gaps of C's dtype, are stored as `sums`
  Activation activation = Activation::None;
  Policy policy = Policy::Exact;
  int alignment = 256;  // of all operands' addresses, at least

  bool operator==(const MatmulSpec&) const = default;
  size_t hash() const;
  bool has_aux() const { return activation == Activation::GeluKept || activation == Activation::GeluBackward; }
  // "bf16 8x64x1024x4096 a(..) b(..) d(..) +bias gelu relaxed": for logs, and as a key of what was measured.
  std::string str() const;
};

// Addresses of the first elements. D overlaps none of the others.
struct MatmulOperands {
  const void* a = nullptr;
  const void* b = nullptr;
  const void* c = nullptr;
  const void* bias = nullptr;
  void* aux = nullptr;
  void* sums = nullptr;
  void* d = nullptr;
};

// A way to compute one spec, on torch's current stream of the spec's device, which is the current one. Any thread.
class Matmul {
 public:
  virtual ~Matmul() = default;
  virtual void run(const MatmulOperands& operands) const = 0;
  // For logs, and to make it again: see make_matmul().
  virtual std::string name() const = 0;
};

// The first of the ordered list of implementations that takes the spec; the last one takes all. A known spec costs a
// look-up under a shared lock.
std::shared_ptr<const Matmul> find_matmul(const MatmulSpec& spec);
// By a name that was given; null: unknown, or it can't be made here.
std::shared_ptr<const Matmul> make_matmul(const std::string& name, const MatmulSpec& spec);

// Why the library can't be used on a device, whatever the spec; empty: it can.
std::string matmul_refusal(const ir::Device& device);

// How many products cuBLASLt ran in this process, for tests.
uint64_t library_products();

}  // namespace graphlift::cuda
