// Owns: how the result of a native call lies: sizes and strides, read off once where they are constant. Must not: say
// where its memory comes from.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/util/SmallVector.h>

#include <span>

#include "ir/type.h"
#include "torch/convert.h"

namespace graphlift::reference {

class ResultLayout {
 public:
  explicit ResultLayout(const ir::TensorType& type)
      : dtype_(torch_layer::to_torch(type.dtype)),
        constant_(ir::is_constant(type.sizes) && ir::is_constant(type.strides)) {
    if (constant_)
      sizes_ = evaluated(type.sizes, {}), strides_ = evaluated(type.strides, {});
    else
      symbolic_sizes_ = type.sizes, symbolic_strides_ = type.strides;
  }

  // allocate(sizes, strides, dtype) with what the symbols stand for.
  template <class Allocate>
  at::Tensor make(std::span<const int64_t> symbols, Allocate allocate) const {
    if (constant_) return allocate(sizes_, strides_, dtype_);
    return allocate(evaluated(symbolic_sizes_, symbols), evaluated(symbolic_strides_, symbols), dtype_);
  }

 protected:
  using Numbers = c10::SmallVector<int64_t, 6>;
  static Numbers evaluated(const ir::Dims& dims, std::span<const int64_t> symbols) {
    Numbers values;
    for (const ir::Sym& dim : dims) values.push_back(dim.eval(symbols));
    return values;
  }

  c10::ScalarType dtype_;
  bool constant_;
  Numbers sizes_, strides_;
  ir::Dims symbolic_sizes_, symbolic_strides_;
};

}  // namespace graphlift::reference
