// Owns: torch's type promotion: categories of dimensioned tensors, 0-dim tensors and wrapped numbers. Must not: know
// operators.
#pragma once

#include <optional>

#include "ir/type.h"
#include "ops/shape_rule.h"

namespace graphlift::ops {

// The dtype both fit into. Undefined stands for nothing. Nullopt: torch refuses the pair.
std::optional<ir::DType> promote(ir::DType a, ir::DType b);
bool can_cast(ir::DType from, ir::DType to);
ir::DType complex_of(ir::DType real);  // float32 -> complex64
ir::DType real_of(ir::DType complex);  // complex64 -> float32; others stay
// The dtype of a number as a tensor: int64, float64, bool, complex128.
ir::DType number_dtype(const ShapeArg& number);

// torch.result_type, operand by operand.
class ResultType {
 public:
  explicit ResultType(ir::DType default_dtype) : default_dtype_(default_dtype) {}
  void add(const ir::TensorType& type);
  void add_number(const ShapeArg& number);
  void add(const ShapeCall& call, size_t i);  // a tensor or a number; anything else is ignored
  std::optional<ir::DType> get() const;

 private:
  void join(ir::DType& slot, ir::DType dtype);
  ir::DType default_dtype_;
  ir::DType dimensioned_ = ir::DType::undefined, zero_dim_ = ir::DType::undefined, wrapped_ = ir::DType::undefined;
  bool failed_ = false;
};

}  // namespace graphlift::ops
