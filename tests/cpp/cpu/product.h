// Owns: contractions of real tensors for tests: the spec that they make, a run, and what torch says in float64.
// Must not: choose an implementation.
#pragma once

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "backends/cpu/contraction.h"
#include "backends/cpu/weight_copies.h"

namespace graphlift::cpu {

struct Product {
  at::Tensor a, b, c;  // a and b expanded to the whole batch
  at::Tensor bias;     // may be undefined
  std::vector<PostOp> post;
  std::vector<at::Tensor> operands;  // of post-ops that read one, expanded to c's sizes
  std::shared_ptr<WeightCopies> copies = std::make_shared<WeightCopies>();

  ContractionSpec spec() const;
  at::Tensor expected() const;  // float64, from what c holds now
  void run(const Contraction& contraction) const;

  // Adds a post-op.
  Product& then(PostOpKind kind, float alpha = 0, float beta = 0);
  Product& then(PostOpKind kind, const at::Tensor& operand);
};

inline ir::DType dtype_of(const at::Tensor& tensor) { return static_cast<ir::DType>(tensor.scalar_type()); }

inline MatrixLayout layout_of(const at::Tensor& tensor) {
  const int64_t rank = tensor.dim();
  MatrixLayout out{tensor.strides().slice(0, static_cast<size_t>(rank - 2)).vec(), tensor.stride(-2),
                   tensor.stride(-1)};
  return out;
}

inline at::Tensor apply(const at::Tensor& y, const PostOp& post, const at::Tensor& operand, const at::Tensor& before) {
  switch (post.kind) {
    case PostOpKind::Relu:
      return y.relu();
    case PostOpKind::LeakyRelu:
      return at::leaky_relu(y, post.alpha);
    case PostOpKind::GeluErf:
      return at::gelu(y);
    case PostOpKind::GeluTanh:
      return at::gelu(y, "tanh");
    case PostOpKind::Silu:
      return at::silu(y);
    case PostOpKind::Sigmoid:
      return y.sigmoid();
    case PostOpKind::Tanh:
      return y.tanh();
    case PostOpKind::Linear:
      return y * post.alpha + post.beta;
    case PostOpKind::Add:
      return y + operand;
    case PostOpKind::Sub:
      return y - operand;
    case PostOpKind::Mul:
      return y * operand;
    case PostOpKind::Div:
      return y / operand;
    case PostOpKind::Accumulate:
      return y + post.alpha * before;
  }
  return y;
}

inline ContractionSpec Product::spec() const {
  ContractionSpec out;
  out.dtype = dtype_of(a);
  out.out_dtype = dtype_of(c);
  out.batch = c.sizes().slice(0, static_cast<size_t>(c.dim() - 2)).vec();
  out.m = c.size(-2);
  out.n = c.size(-1);
  out.k = a.size(-1);
  out.a = layout_of(a);
  out.b = layout_of(b);
  out.c = layout_of(c);
  if (bias.defined()) out.bias = dtype_of(bias);
  out.post = post;
  return out;
}

inline at::Tensor Product::expected() const {
  at::Tensor y = at::matmul(a.to(at::kDouble), b.to(at::kDouble));
  if (bias.defined()) y = y + bias.to(at::kDouble);
  size_t next = 0;
  for (const PostOp& it : post) {
    const bool reads = operand_of(it.kind) == PostOpOperand::Tensor;
    y = apply(y, it, reads ? operands[next].to(at::kDouble) : at::Tensor(), c.to(at::kDouble));
    next += reads;
  }
  return y;
}

inline void Product::run(const Contraction& contraction) const {
  std::vector<const void*> addresses;
  for (const at::Tensor& it : operands) addresses.push_back(it.const_data_ptr());
  contraction.run({.a = a.const_data_ptr(),
                   .b = b.const_data_ptr(),
                   .bias = bias.defined() ? bias.const_data_ptr() : nullptr,
                   .c = c.data_ptr(),
                   .post = addresses.data(),
                   .b_tensor = &b,
                   .copies = copies.get()});
}

inline Product& Product::then(PostOpKind kind, float alpha, float beta) {
  post.push_back({.kind = kind, .alpha = alpha, .beta = beta});
  return *this;
}

inline Product& Product::then(PostOpKind kind, const at::Tensor& operand) {
  operands.push_back(operand.expand(c.sizes()));
  std::vector<int64_t> strides = operands.back().strides().vec();
  post.push_back({.kind = kind, .operand = {dtype_of(operand), strides}});
  return *this;
}

// c for these operands, full of NaN.
inline Product product(const at::Tensor& a, const at::Tensor& b) {
  std::vector<int64_t> sizes = a.sizes().vec();
  sizes.back() = b.size(-1);
  return {.a = a, .b = b, .c = at::full(sizes, std::numeric_limits<double>::quiet_NaN(), a.options())};
}

// a [batch..., m, k], b [batch..., k, n], c contiguous [batch..., m, n] full of NaN.
inline Product product(at::IntArrayRef batch, int64_t m, int64_t n, int64_t k, at::ScalarType dtype = at::kFloat) {
  std::vector<int64_t> a = batch.vec(), b = batch.vec();
  a.insert(a.end(), {m, k});
  b.insert(b.end(), {k, n});
  return product(at::randn(a, at::kFloat).to(dtype), at::randn(b, at::kFloat).to(dtype));
}

// The largest |c - expected|, relative to the largest of |expected|, sqrt(k)/4 and 1: k terms that cancel each other
// are as wrong as what they are sums of, which grows as the root of k. NaN where one is NaN and the other not.
inline double error(const at::Tensor& c, const at::Tensor& expected, int64_t k = 1) {
  if (c.numel() == 0) return 0;
  const at::Tensor value = c.to(at::kDouble);
  if (!at::equal(value.isnan(), expected.isnan())) return std::numeric_limits<double>::quiet_NaN();
  const at::Tensor difference = at::where(value == expected, 0.0, value - expected).abs().nan_to_num(0);
  const double largest = expected.nan_to_num(0, 0, 0).abs().max().item<double>();
  return difference.max().item<double>() / std::max({1.0, std::sqrt(static_cast<double>(k)) / 4, largest});
}

}  // namespace graphlift::cpu
