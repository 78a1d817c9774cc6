// Owns: the contraction as its transpose. A wide product of few rows by a B that is stored by columns (a linear layer's
// forward) makes the kernel copy all of B; as the A of C^T = B^T A^T it is read where it lies, and only C^T, which is
// small, is moved once more.
#include <ATen/Parallel.h>

#include <algorithm>

#include "backends/cpu/aligned_buffer.h"
#include "backends/cpu/onednn.h"
#include "backends/cpu/onednn/attributes.h"
#include "backends/cpu/onednn/matmul.h"
#include "base/text.h"

namespace graphlift::cpu {
namespace onednn {
namespace {

float* thread_buffer(size_t count) {
  thread_local AlignedBuffer buffer;
  if (buffer.size() < count * sizeof(float)) buffer = AlignedBuffer(count * sizeof(float));
  return static_cast<float*>(buffer.data());
}

class SwappedMatmul final : public Contraction {
 public:
  SwappedMatmul(const ContractionSpec& swapped, bool has_bias, std::unique_ptr<const Primitive> product,
                std::unique_ptr<const Primitive> transposition)
      : swapped_(swapped),
        has_bias_(has_bias),
        product_(std::move(product)),
        transposition_(std::move(transposition)) {}

  void run(const ContractionOperands& operands) const override {
    float* buffer = thread_buffer(static_cast<size_t>(swapped_.m * swapped_.n));
    if (has_bias_) fill_rows(static_cast<const float*>(operands.bias), buffer);
    run_matmul(swapped_, {.a = operands.b, .b = operands.a, .c = buffer}, operands.a,
               [&](void* const* addresses) { product_->run(addresses); });
    void* const addresses[] = {buffer, operands.c};
    transposition_->run(addresses);
  }

  std::string implementation() const override { return cat("onednn swapped ", product_->variant().implementation()); }

 private:
  // A bias per column of C is one per row of C^T, which no kernel adds: the product accumulates onto it.
  void fill_rows(const float* bias, float* out) const {
    const int64_t width = swapped_.n;
    at::parallel_for(0, swapped_.m, std::max<int64_t>(1, 16384 / width), [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) std::fill_n(out + row * width, width, bias[row]);
    });
  }

  const ContractionSpec swapped_;
  const bool has_bias_;
  const std::unique_ptr<const Primitive> product_;
  const std::unique_ptr<const Primitive> transposition_;
};

PrimitiveDesc describe_transposition(const ContractionSpec& spec) {
  const MemoryDesc from = strided_desc({spec.m, spec.n}, {1, spec.m}, dnnl_f32);
  const MemoryDesc to = strided_desc({spec.m, spec.n}, {spec.c.row, spec.c.column}, dnnl_f32);
  return from && to ? unless_reference(describe_reorder(from.get(), to.get())) : nullptr;
}

bool fits(const ContractionSpec& spec) {
  const auto f32 = ir::DType::float32;
  const bool plain = spec.batch.empty() && spec.dtype == f32 && spec.out_dtype == f32;
  const bool bias = spec.bias == ir::DType::undefined || spec.bias == f32;
  return plain && bias && std::all_of(spec.post.begin(), spec.post.end(), [](const PostOp& it) {
           return operand_of(it.kind) == PostOpOperand::None;
         });
}

}  // namespace
}  // namespace onednn

std::unique_ptr<const Contraction> make_onednn_swapped(const ContractionSpec& spec, std::string* why) {
  if (!onednn::library(why)) return nullptr;
  if (!onednn::fits(spec)) {
    if (why) *why = "only a float32 product whose post-ops read no tensor is computed as its transpose";
    return nullptr;
  }
  ContractionSpec swapped = spec;
  swapped.m = spec.n;
  swapped.n = spec.m;
  swapped.a = {{}, spec.b.column, spec.b.row};
  swapped.b = {{}, spec.a.column, spec.a.row};
  swapped.c = {{}, spec.m, 1};
  swapped.bias = ir::DType::undefined;
  const bool has_bias = spec.bias != ir::DType::undefined;
  if (has_bias) swapped.post.insert(swapped.post.begin(), {.kind = PostOpKind::Accumulate, .alpha = 1});
  auto product = onednn::make_matmul(swapped, onednn::WeightLayout::Plain, why);
  if (!product) return nullptr;
  auto transposition = onednn::Primitive::make([spec] { return onednn::describe_transposition(spec); },
                                               {{DNNL_ARG_FROM}, {DNNL_ARG_TO}});
  if (!transposition) {
    if (why) *why = "oneDNN has no fast transposition";
    return nullptr;
  }
  return std::make_unique<onednn::SwappedMatmul>(swapped, has_bias, std::move(product), std::move(transposition));
}

}  // namespace graphlift::cpu
