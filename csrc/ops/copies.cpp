// Owns: rows of copies: clone, conversions, copy into. Must not: hold views or factories.
#include "ops/family.h"
#include "ops/iterator.h"
#include "ops/results.h"

namespace graphlift::ops {
namespace {

using ir::Dims;
using ir::DType;
using ir::TensorType;

// Fresh memory in the asked format, by default in that of `like`.
bool give_in_format(ShapeCall& call, const TensorType& like, size_t format_argument) {
  const auto format = static_cast<Format>(call.memory_format(format_argument).value_or(1));
  if (format == Format::Preserve) return give_preserved(call, like, like.dtype);
  if (format != Format::Contiguous && like.rank() != (format == Format::ChannelsLast ? 4 : 5)) return false;
  return give_format(call, like, like.sizes, format);
}

bool clone(ShapeCall& call) { return give_in_format(call, call.tensor(0), 1); }

// self, dtype, layout, device, pin_memory, non_blocking, memory_format.
bool to_copy(ShapeCall& call) {
  TensorType type = call.tensor(0);
  type.dtype = call.dtype(1).value_or(type.dtype);
  type.device = call.device(3).value_or(type.device);
  return give_in_format(call, type, 6);
}

bool fits(ShapeCall& call) {
  if (!call.is_tensor(1)) return call.is_number(1);
  auto sizes = broadcast(call.env, call.tensor(0).sizes, call.tensor(1).sizes);
  return sizes && equal(call.env, *sizes, call.tensor(0).sizes);
}

bool copy(ShapeCall& call) { return fits(call) && give_self_copied(call); }
bool copy_in_place(ShapeCall& call) { return fits(call) && give_self_in_place(call); }

bool lift_fresh_copy(ShapeCall& call) { return give_contiguous(call, call.tensor(0), call.tensor(0).sizes); }

constexpr OpRow kCopies[] = {
    GL_OP("clone", "default", clone),
    GL_OP("_to_copy", "default", to_copy),
    GL_OP("copy", "default", copy),
    GL_OP("copy_", "default", copy_in_place),
    GL_OP("lift_fresh_copy", "default", lift_fresh_copy),
};

}  // namespace

std::span<const OpRow> copies_rows() { return kCopies; }

}  // namespace graphlift::ops
