// Owns: rows of padding. Must not: hold resampling.
#include "ops/family.h"
#include "ops/results.h"
#include "ops/views.h"

namespace graphlift::ops {
namespace {

using ir::Dims;
using ir::Sym;
using ir::TensorType;

// self, pad (last dim first, before and after), value. Where nothing is added it is a copy of a part.
bool constant_pad(ShapeCall& call) {
  const TensorType& self = call.tensor(0);
  const Dims pad = call.syms(1);
  if (pad.size() % 2 != 0 || pad.size() / 2 > self.sizes.size()) return false;
  TensorType part = self;
  Dims sizes = self.sizes;
  bool grows = false;
  for (size_t i = 0; i < pad.size() / 2; ++i) {
    const size_t dim = self.sizes.size() - 1 - i;
    const Sym &before = pad[2 * i], &after = pad[2 * i + 1];
    sizes[dim] = sizes[dim] + before + after;
    if (less(call.env, sizes[dim], 0)) return false;
    const bool cuts_before = less(call.env, before, 0), cuts_after = less(call.env, after, 0);
    grows |= (!cuts_before && !equal(call.env, before, 0)) || (!cuts_after && !equal(call.env, after, 0));
    if (!cuts_before && !cuts_after) continue;
    const Sym start = cuts_before ? -before : Sym(0);
    const Sym end = cuts_after ? part.sizes[dim] + after : part.sizes[dim];
    if (!at_most(call.env, start, end) || !narrow(call.env, part, static_cast<int>(dim), start, end, 1)) return false;
  }
  if (!grows) return give_preserved(call, part, part.dtype);
  return give_format(call, self, std::move(sizes), suggest_format(call.env, self));
}

// The last D dims grow by `padding`, last dim first. Reflection needs each pad to be smaller than its dim.
template <size_t D, bool Reflection>
bool edge_pad(ShapeCall& call) {
  const TensorType& self = call.tensor(0);
  const Dims pad = call.syms(1);
  const size_t rank = self.sizes.size();
  if (pad.size() != 2 * D || (rank != D + 1 && rank != D + 2)) return false;
  Dims sizes = self.sizes;
  for (size_t i = rank == D + 2 ? 1 : 0; i < rank; ++i)
    if (equal(call.env, self.sizes[i], 0)) return false;
  for (size_t i = 0; i < D; ++i) {
    const size_t dim = rank - 1 - i;
    if (Reflection && (!less(call.env, pad[2 * i], sizes[dim]) || !less(call.env, pad[2 * i + 1], sizes[dim])))
      return false;
    sizes[dim] = sizes[dim] + pad[2 * i] + pad[2 * i + 1];
    if (less(call.env, sizes[dim], 1)) return false;
  }
  const bool keeps_format = self.device.is_cpu() && D > 1;
  return give_format(call, self, std::move(sizes), keeps_format ? suggest_format(call.env, self) : Format::Contiguous);
}

// grad, self, padding.
template <size_t D>
bool edge_pad_backward(ShapeCall& call) {
  const TensorType& self = call.tensor(1);
  const bool keeps_format = self.device.is_cpu() && D > 1;
  return give_format(call, self, self.sizes, keeps_format ? suggest_format(call.env, self) : Format::Contiguous);
}

#define PAD(kind, dims, reflection)                                      \
  GL_OP(kind "_pad" #dims "d", "default", (edge_pad<dims, reflection>)), \
      GL_OP(kind "_pad" #dims "d_backward", "default", edge_pad_backward<dims>)

constexpr OpRow kPadding[] = {
    GL_OP("constant_pad_nd", "default", constant_pad),
    PAD("reflection", 1, true),
    PAD("reflection", 2, true),
    PAD("reflection", 3, true),
    PAD("replication", 1, false),
    PAD("replication", 2, false),
    PAD("replication", 3, false),
};

}  // namespace

std::span<const OpRow> padding_rows() { return kPadding; }

}  // namespace graphlift::ops
