// Owns: products by torch's kernels, on memory that is seen as tensors. It takes every spec, so it is what remains.
#include <ATen/ATen.h>
#include <ATen/ops/from_blob.h>

#include "backends/cuda/matmul_list.h"
#include "torch/convert.h"

namespace graphlift::cuda {
namespace {

class TorchMatmul final : public Matmul {
 public:
  explicit TorchMatmul(const MatmulSpec& spec)
      : spec_(spec),
        options_(at::TensorOptions(torch_layer::to_torch(spec.dtype)).device(torch_layer::to_torch(spec.device))),
        out_options_(options_.dtype(torch_layer::to_torch(spec.out))) {}

  // A product of 16 bits is widened when it is done.
  void run(const MatmulOperands& operands) const override {
    if (spec_.out == spec_.dtype) return multiply(operands);
    MatmulSpec narrow = spec_;
    narrow.out = spec_.dtype;
    narrow.beta = 0;
    narrow.activation = Activation::None;
    at::Tensor d = view(operands.d, spec_.d, spec_.m, spec_.n, out_options_);
    const at::Tensor product = at::empty_strided(d.sizes(), d.strides(), options_);
    MatmulOperands inner = operands;
    inner.d = product.data_ptr();
    TorchMatmul(narrow).multiply(inner);
    d.copy_(product);
    if (spec_.beta != 0) d.add_(view(operands.c, spec_.c, spec_.m, spec_.n, out_options_), spec_.beta);
    activate(operands, &d);
  }

  std::string name() const override { return kTorchMatmul; }

 private:
  void multiply(const MatmulOperands& operands) const {
    const at::Tensor a = view(operands.a, spec_.a, spec_.m, spec_.k), b = view(operands.b, spec_.b, spec_.k, spec_.n);
    at::Tensor d = view(operands.d, spec_.d, spec_.m, spec_.n);
    if (d.numel() == 0) return;
    if (spec_.beta != 0)
      add(view(operands.c, spec_.c, spec_.m, spec_.n), a, b, spec_.beta, &d);
    else if (spec_.bias && spec_.alpha == 1)
      add(at::from_blob(const_cast<void*>(operands.bias), {spec_.n}, options_), a, b, 1, &d);
    else if (spec_.batch == 1)
      at::mm_out(d, a, b);
    else
      at::bmm_out(d, a, b);
    if (spec_.beta == 0 && spec_.alpha != 1) d.mul_(spec_.alpha);
    if (spec_.bias && (spec_.beta != 0 || spec_.alpha != 1))
      d.add_(at::from_blob(const_cast<void*>(operands.bias), {spec_.n}, options_));
    activate(operands, &d);
  }

  at::Tensor view(const void* data, const MatrixLayout& layout, int64_t rows, int64_t columns) const {
    return view(data, layout, rows, columns, options_);
  }

  at::Tensor view(const void* data, const MatrixLayout& layout, int64_t rows, int64_t columns,
                  const at::TensorOptions& options) const {
    auto* memory = const_cast<void*>(data);
    if (spec_.batch == 1)
      return at::for_blob(memory, {rows, columns})
          .strides({layout.row, layout.column})
          .options(options)
          .target_device(options.device())
          .make_tensor();
    return at::for_blob(memory, {spec_.batch, rows, columns})
        .strides({layout.batch, layout.row, layout.column})
        .options(options)
        .target_device(options.device())
        .make_tensor();
  }

  void add(const at::Tensor& c, const at::Tensor& a, const at::Tensor& b, double beta, at::Tensor* d) const {
    if (spec_.batch == 1)
      at::addmm_out(*d, c, a, b, beta, spec_.alpha);
    else
      at::baddbmm_out(*d, c, a, b, beta, spec_.alpha);
  }

  void activate(const MatmulOperands& operands, at::Tensor* d) const {
    switch (spec_.activation) {
      case Activation::None:
        return;
      case Activation::Relu:
        d->relu_();
        return;
      case Activation::Gelu:
        at::gelu_out(*d, *d, "tanh");
        return;
      case Activation::GeluKept: {
        at::Tensor aux = view(operands.aux, spec_.aux, spec_.m, spec_.n);
        aux.copy_(*d);
        at::gelu_out(*d, aux, "tanh");
        return;
      }
      case Activation::GeluBackward:
        at::gelu_backward_out(*d, *d, view(operands.aux, spec_.aux, spec_.m, spec_.n), "tanh");
    }
  }

  const MatmulSpec spec_;
  const at::TensorOptions options_, out_options_;
};

}  // namespace

std::unique_ptr<const Matmul> make_torch_matmul(const MatmulSpec& spec) { return std::make_unique<TorchMatmul>(spec); }

}  // namespace graphlift::cuda
