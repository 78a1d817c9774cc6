// Owns: rows of softmax, log-softmax and their gradients. Must not: hold losses.
#include "ops/family.h"
#include "ops/results.h"

namespace graphlift::ops {
namespace {

using ir::DType;
using ir::TensorType;

// self, dim, half_to_float. Contiguous whatever the layout of self.
bool softmax(ShapeCall& call) {
  const TensorType& self = call.tensor(0);
  const bool widen = call.boolean(2);
  if (!ir::is_floating(self.dtype) || !wrap_dim(call.integer(1), self.rank())) return false;
  if (widen && (self.device.is_cpu() || self.dtype != DType::float16)) return false;
  return give_contiguous(call, widen ? DType::float32 : self.dtype, self.device, self.sizes);
}

// grad, output, dim, input_dtype.
bool softmax_backward(ShapeCall& call) {
  const TensorType& grad = call.tensor(0);
  const DType dtype = *call.dtype(3);
  if (!equal(call.env, grad.sizes, call.tensor(1).sizes)) return false;
  if (dtype != grad.dtype && (grad.dtype != DType::float32 || dtype != DType::float16 || grad.device.is_cpu()))
    return false;
  return give_contiguous(call, dtype, grad.device, grad.sizes);
}

// self, dim, dtype.
bool safe_softmax(ShapeCall& call) {
  const TensorType& self = call.tensor(0);
  const DType dtype = call.dtype(2).value_or(self.dtype);
  if (!ir::is_floating(dtype) || !wrap_dim(call.integer(1), self.rank())) return false;
  return give_contiguous(call, dtype, self.device, self.sizes);
}

constexpr OpRow kSoftmax[] = {
    GL_OP("_softmax", "default", softmax),
    GL_OP("_log_softmax", "default", softmax),
    GL_OP("_softmax_backward_data", "default", softmax_backward),
    GL_OP("_log_softmax_backward_data", "default", softmax_backward),
    GL_OP("_safe_softmax", "default", safe_softmax),
};

}  // namespace

std::span<const OpRow> softmax_rows() { return kSoftmax; }

}  // namespace graphlift::ops
