// Owns: how eager lays tensors out: contiguity, channels last, density, views, with symbolic sizes. Questions about
// sizes are answered by the shape environment, which records what was relied on. Must not: know operators or dtypes.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "ir/type.h"

namespace graphlift::ops {

// Numbers of c10::MemoryFormat.
enum class Format : int8_t { Contiguous = 0, Preserve = 1, ChannelsLast = 2, ChannelsLast3d = 3 };

bool equal(ir::ShapeEnv& env, const ir::Sym& a, const ir::Sym& b);
bool less(ir::ShapeEnv& env, const ir::Sym& a, const ir::Sym& b);
bool at_most(ir::ShapeEnv& env, const ir::Sym& a, const ir::Sym& b);  // a <= b
bool equal(ir::ShapeEnv& env, const ir::Dims& a, const ir::Dims& b);
// Structurally the same: nothing is asked or recorded.
bool same(const ir::Dims& a, const ir::Dims& b);

// Negative dims count from the end; a 0-dim tensor has one dim to name. Nullopt: out of range.
std::optional<int> wrap_dim(int64_t dim, int rank);
// The named dims as flags; no list or an empty one means all. Nullopt: out of range or named twice.
std::optional<std::vector<bool>> dim_mask(const std::vector<int64_t>& dims, int rank, bool empty_means_all = true);

ir::Sym product(std::span<const ir::Sym> sizes);
bool is_empty(ir::ShapeEnv& env, const ir::Dims& sizes);  // no elements
ir::Dims contiguous(const ir::Dims& sizes);               // strides; a size of 0 counts as 1
ir::Dims strides_for(const ir::Dims& sizes, Format format);

bool is_contiguous(ir::ShapeEnv& env, const ir::TensorType& type);
bool is_contiguous(ir::ShapeEnv& env, const ir::TensorType& type, Format format);
bool is_dense(ir::ShapeEnv& env, const ir::TensorType& type);  // non-overlapping and dense
Format suggest_format(ir::ShapeEnv& env, const ir::TensorType& type);
// The strides of a fresh tensor that preserves the format of `type`.
ir::Dims preserved_strides(ir::ShapeEnv& env, const ir::TensorType& type);

// Dims from the innermost outwards, in the order in which torch's iterator walks them: `strides` has one list per
// operand, a stride of 0 says nothing. Broken ties keep the natural order.
std::vector<int> iteration_order(ir::ShapeEnv& env, const ir::Dims& sizes, const std::vector<ir::Dims>& strides);

// The common size of dims a and b, or nullopt when they do not broadcast.
std::optional<ir::Dims> broadcast(ir::ShapeEnv& env, const ir::Dims& a, const ir::Dims& b);
// Sizes with a -1 worked out; nullopt when the number of elements differs.
std::optional<ir::Dims> infer_sizes(ir::ShapeEnv& env, const ir::Dims& from, const ir::Dims& to);
// Strides of a view with other sizes and as many elements; nullopt when it would need a copy.
std::optional<ir::Dims> view_strides(ir::ShapeEnv& env, const ir::TensorType& type, const ir::Dims& sizes);

}  // namespace graphlift::ops
