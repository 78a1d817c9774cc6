// Owns: a matrix contraction on CPU as data (ContractionSpec), the interface of its implementations, and the process-
// wide cache of those that were made. Which implementation a spec gets is contraction_choice.h's.
// Must not: include torch's or oneDNN's headers; know graphs or the Program that calls it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "backends/cpu/contraction_post_op.h"
#include "ir/type.h"

namespace at {
class Tensor;
}

namespace graphlift::cpu {

class WeightCopies;

// Strides in elements: one per batch dimension, 0 where the operand is broadcast over it; then of a row, of a column.
// Transposed operands are just other strides.
struct MatrixLayout {
  std::vector<int64_t> batch;
  int64_t row = 0;
  int64_t column = 1;
  bool operator==(const MatrixLayout&) const = default;
};

// C[batch, m, n] = post(A[batch, m, k] @ B[batch, k, n] + bias[n]), accumulated in float32 for dtypes below that.
struct ContractionSpec {
  ir::DType dtype = ir::DType::float32;      // of A and B
  ir::DType out_dtype = ir::DType::float32;  // of C
  std::vector<int64_t> batch;                // sizes of batch dimensions, outermost first; often empty
  int64_t m = 0, n = 0, k = 0;
  MatrixLayout a, b, c;
  ir::DType bias = ir::DType::undefined;  // dtype of n numbers without gaps; undefined: no bias
  std::vector<PostOp> post;               // in this order; operands have batch.size() + 2 strides
  // B may be kept in the form that the kernel likes (weight_copies.h).
  bool remember_b = false;

  bool operator==(const ContractionSpec&) const = default;
  size_t hash() const;
  // "f32 64x1024x4096 a(1024,1) b(1,1024) c(4096,1) +bias gelu add": for logs.
  std::string str() const;
};

// What one run reads and writes: addresses of the first element. C overlaps none of the others.
struct ContractionOperands {
  const void* a = nullptr;
  const void* b = nullptr;
  const void* bias = nullptr;
  void* c = nullptr;
  const void* const* post = nullptr;  // one per post-op that reads a tensor, in order
  // With remember_b only: the tensor that owns b, and who keeps its copies. Null: nothing is kept.
  const at::Tensor* b_tensor = nullptr;
  WeightCopies* copies = nullptr;
};

// A way to compute one spec. Immutable; run() may be called by many threads at once, needs no GIL, uses as many threads
// as at::get_num_threads() says at the call (one inside a parallel region), and allocates nothing after a thread's
// first calls. An empty C is left alone. Throws InternalError when the library reports a failure.
class Contraction {
 public:
  virtual ~Contraction() = default;
  virtual void run(const ContractionOperands& operands) const = 0;
  // "onednn brg:avx512_core", "torch gemm": for logs and measurements.
  virtual std::string implementation() const = 0;
};

// The best implementation of this spec, from the cache or made now; null when nothing here beats or can replace torch's
// own operator: `why` then says the reason. A null for a spec with post-ops says nothing of the same without: ask
// again, with the post-ops in a kernel of their own. Any thread; a known spec costs a look-up under a shared lock.
std::shared_ptr<const Contraction> find_contraction(const ContractionSpec& spec, std::string* why = nullptr);

// The same, by the row of the list of implementations named so ("onednn", "onednn packed", "gemm"), for tuning, tests
// and measurements.
std::vector<std::string_view> contraction_implementations();
std::shared_ptr<const Contraction> make_contraction(std::string_view implementation, const ContractionSpec& spec,
                                                    std::string* why = nullptr);

}  // namespace graphlift::cpu
