// Owns: rows of fused optimizer steps, loss scaling and checks: operators that write into lists or return nothing.
// Must not: hold _foreach_ operators: the recorder composes those item by item.
#include "ops/family.h"
#include "ops/iterator.h"
#include "ops/results.h"

namespace graphlift::ops {
namespace {

using ir::TensorType;

// In place, or a check: nothing is returned.
bool nothing(ShapeCall&) { return true; }

// The first `Lists` arguments come back as written copies.
template <size_t Lists>
bool written_lists(ShapeCall& call) {
  for (size_t i = 0; i < Lists; ++i)
    for (const TensorType* type : call.tensors(i)) {
      if (!type) return false;
      give_preserved(call, *type, type->dtype);
    }
  return true;
}

// self[], found_inf, inv_scale.
bool check_and_unscale(ShapeCall& call) {
  return written_lists<1>(call) && give_preserved(call, call.tensor(1), call.tensor(1).dtype);
}

// self, growth_tracker, ...
bool update_scale(ShapeCall& call) {
  return give_preserved(call, call.tensor(0), call.tensor(0).dtype) &&
         give_preserved(call, call.tensor(1), call.tensor(1).dtype);
}

#define FUSED(name, lists)                                                    \
  GL_OP(name "_", "default", nothing), GL_OP(name "_", "tensor_lr", nothing), \
      GL_OP(name, "default", written_lists<lists>), GL_OP(name, "tensor_lr", written_lists<lists>)

constexpr OpRow kOptimizers[] = {
    FUSED("_fused_adam", 5),
    FUSED("_fused_adamw", 5),
    FUSED("_fused_sgd", 3),
    GL_OP("_amp_foreach_non_finite_check_and_unscale_", "default", nothing),
    GL_OP("_amp_foreach_non_finite_check_and_unscale", "default", check_and_unscale),
    GL_OP("_amp_update_scale_", "default", give_self_in_place),
    GL_OP("_amp_update_scale", "default", update_scale),
    GL_OP("_assert_async", "default", nothing),
    GL_OP("_assert_async", "msg", nothing),
    GL_OP("_assert_tensor_metadata", "default", nothing),
};

}  // namespace

std::span<const OpRow> optimizers_rows() { return kOptimizers; }

}  // namespace graphlift::ops
