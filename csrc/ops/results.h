// Owns: short ways to give a call's results. Must not: compute layouts.
#pragma once

#include "ops/layout.h"
#include "ops/shape_rule.h"

namespace graphlift::ops {

// Each returns true, so that a rule can end with it. Results of one call are given in order.
inline bool give(ShapeCall& call, ir::TensorType type) {
  type.requires_grad = false;
  call.results.push_back(std::move(type));
  return true;
}
inline bool give(ShapeCall& call, ir::DType dtype, ir::Device device, ir::Dims sizes, ir::Dims strides) {
  return give(call, {dtype, device, std::move(sizes), std::move(strides), 0, false});
}
inline bool give_contiguous(ShapeCall& call, ir::DType dtype, ir::Device device, ir::Dims sizes) {
  ir::Dims strides = contiguous(sizes);
  return give(call, dtype, device, std::move(sizes), std::move(strides));
}
inline bool give_contiguous(ShapeCall& call, const ir::TensorType& like, ir::Dims sizes) {
  return give_contiguous(call, like.dtype, like.device, std::move(sizes));
}
inline bool give_format(ShapeCall& call, const ir::TensorType& like, ir::Dims sizes, Format format) {
  ir::Dims strides = strides_for(sizes, format);
  return give(call, like.dtype, like.device, std::move(sizes), std::move(strides));
}
// Fresh memory with the format of `like`.
inline bool give_preserved(ShapeCall& call, const ir::TensorType& like, ir::DType dtype) {
  return give(call, dtype, like.device, like.sizes, preserved_strides(call.env, like));
}
inline bool give_undefined(ShapeCall& call) {
  call.results.push_back(std::nullopt);
  return true;
}

}  // namespace graphlift::ops
