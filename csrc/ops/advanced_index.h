// Owns: what indexing by a list of tensors reads, as torch's iterator sees it. Must not: hold rows.
#pragma once

#include <optional>
#include <vector>

#include "ops/layout.h"

namespace graphlift::ops {

bool is_index_dtype(ir::DType dtype);  // int64 and int32: their sizes do not depend on data, unlike those of masks
bool is_cpu_scalar_or_on(const ir::TensorType& type, ir::Device device);

// `source` has the result's sizes, with strides of 0 where indices choose; `indices` broadcast against it.
struct AdvancedIndex {
  ir::TensorType source;
  std::vector<ir::TensorType> indices;
};

// A null index takes the whole dim. Nullopt: a mask, or sizes that do not broadcast.
std::optional<AdvancedIndex> advanced_index(ir::ShapeEnv& env, ir::TensorType self,
                                            std::vector<const ir::TensorType*> indices);

}  // namespace graphlift::ops
