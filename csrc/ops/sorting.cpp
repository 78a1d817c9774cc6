// Owns: rows of sorting and selection by rank. Must not: hold reductions without order.
#include "ops/family.h"
#include "ops/results.h"

namespace graphlift::ops {
namespace {

using ir::Dims;
using ir::DType;
using ir::Sym;
using ir::TensorType;

bool sort_along(ShapeCall& call, size_t dim) {
  const TensorType& self = call.tensor(0);
  if (ir::is_complex(self.dtype) || !wrap_dim(call.integer(dim), self.rank())) return false;
  return give_preserved(call, self, self.dtype) && give_preserved(call, self, DType::int64);
}
bool sort(ShapeCall& call) { return sort_along(call, 1); }
bool sort_stable(ShapeCall& call) { return sort_along(call, 2); }

// self, k, dim, largest, sorted.
bool topk(ShapeCall& call) {
  const TensorType& self = call.tensor(0);
  auto dim = wrap_dim(call.integer(2), self.rank());
  if (!dim || ir::is_complex(self.dtype) || self.dtype == DType::bool_) return false;
  const Sym count = call.sym(1), size = self.rank() > 0 ? self.sizes[*dim] : Sym(1);
  if (less(call.env, count, 0) || !at_most(call.env, count, size)) return false;
  Dims sizes = self.sizes;
  if (self.rank() > 0) sizes[*dim] = count;
  return give_contiguous(call, self, sizes) && give_contiguous(call, DType::int64, self.device, sizes);
}

// One value along a dim and where it is: dim, keepdim at the given arguments.
bool pick(ShapeCall& call, size_t dim_argument) {
  const TensorType& self = call.tensor(0);
  auto dim = wrap_dim(call.integer(dim_argument), self.rank());
  if (!dim || ir::is_complex(self.dtype)) return false;
  Dims sizes = self.sizes;
  if (self.rank() > 0) {
    if (!less(call.env, 0, sizes[*dim])) return false;
    if (call.boolean(dim_argument + 1)) {
      sizes[*dim] = 1;
    } else {
      sizes.erase(sizes.begin() + *dim);
    }
  }
  return give_contiguous(call, self, sizes) && give_contiguous(call, DType::int64, self.device, sizes);
}
bool median_dim(ShapeCall& call) { return pick(call, 1); }
bool kthvalue(ShapeCall& call) { return pick(call, 2); }
bool median(ShapeCall& call) {
  return !ir::is_complex(call.tensor(0).dtype) && give_contiguous(call, call.tensor(0), {});
}

// self, bins, min, max.
bool histogram(ShapeCall& call) { return give_contiguous(call, call.tensor(0), {call.sym(1)}); }

constexpr OpRow kSorting[] = {
    GL_OP("sort", "default", sort),        GL_OP("sort", "stable", sort_stable), GL_OP("topk", "default", topk),
    GL_OP("median", "default", median),    GL_OP("median", "dim", median_dim),   GL_OP("nanmedian", "default", median),
    GL_OP("nanmedian", "dim", median_dim), GL_OP("mode", "default", median_dim), GL_OP("kthvalue", "default", kthvalue),
    GL_OP("histc", "default", histogram),
};

}  // namespace

std::span<const OpRow> sorting_rows() { return kSorting; }

}  // namespace graphlift::ops
