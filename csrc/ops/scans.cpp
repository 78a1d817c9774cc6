// Owns: rows of cumulative operators. Results are contiguous. Must not: hold reductions.
#include "ops/family.h"
#include "ops/iterator.h"
#include "ops/results.h"

namespace graphlift::ops {
namespace {

using ir::DType;
using ir::TensorType;

// self, dim, dtype.
bool sum_or_product(ShapeCall& call) {
  const TensorType& self = call.tensor(0);
  if (!wrap_dim(call.integer(1), self.rank())) return false;
  const bool inexact = ir::is_floating(self.dtype) || ir::is_complex(self.dtype);
  const DType dtype = call.dtype(2).value_or(inexact ? self.dtype : DType::int64);
  return give_contiguous(call, dtype, self.device, self.sizes);
}

// In place the dtype of self stays.
bool sum_or_product_in_place(ShapeCall& call) {
  const TensorType& self = call.tensor(0);
  const DType asked = call.dtype(2).value_or(self.dtype);
  return wrap_dim(call.integer(1), self.rank()) && asked == self.dtype && give_self_in_place(call);
}

bool log_cumulative_sum(ShapeCall& call) {
  const TensorType& self = call.tensor(0);
  if (!ir::is_floating(self.dtype) && !ir::is_complex(self.dtype)) return false;
  return wrap_dim(call.integer(1), self.rank()) && give_contiguous(call, self, self.sizes);
}

bool extreme(ShapeCall& call) {
  const TensorType& self = call.tensor(0);
  if (ir::is_complex(self.dtype) || !wrap_dim(call.integer(1), self.rank())) return false;
  return give_contiguous(call, self, self.sizes) && give_contiguous(call, DType::int64, self.device, self.sizes);
}

constexpr OpRow kScans[] = {
    GL_OP("cumsum", "default", sum_or_product),
    GL_OP("cumprod", "default", sum_or_product),
    GL_OP("cumsum_", "default", sum_or_product_in_place),
    GL_OP("cumprod_", "default", sum_or_product_in_place),
    GL_OP("logcumsumexp", "default", log_cumulative_sum),
    GL_OP("cummax", "default", extreme),
    GL_OP("cummin", "default", extreme),
};

}  // namespace

std::span<const OpRow> scans_rows() { return kScans; }

}  // namespace graphlift::ops
