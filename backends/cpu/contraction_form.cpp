// Owns: canonical(): small steps, each of which keeps what is computed.
#include "backends/cpu/contraction_form.h"

#include <algorithm>
#include <utility>

namespace graphlift::cpu {
namespace {

// Calls `with(batch_strides, row_stride)` for A, C and the post-ops' operands, that is for all that have C's rows.
template <typename With>
bool all_with_rows(ContractionSpec& spec, With&& with) {
  if (!with(spec.a.batch, spec.a.row) || !with(spec.c.batch, spec.c.row)) return false;
  for (PostOp& post : spec.post) {
    if (operand_of(post.kind) != PostOpOperand::Tensor) continue;
    std::vector<int64_t>& strides = post.operand.strides;
    if (!with(strides, strides[strides.size() - 2])) return false;
  }
  return true;
}

// The same for everything that has batch dimensions.
template <typename With>
bool all_with_batch(ContractionSpec& spec, With&& with) {
  if (!with(spec.a.batch) || !with(spec.b.batch) || !with(spec.c.batch)) return false;
  for (PostOp& post : spec.post)
    if (operand_of(post.kind) == PostOpOperand::Tensor && !with(post.operand.strides)) return false;
  return true;
}

void drop_batch(ContractionSpec& spec, size_t at) {
  spec.batch.erase(spec.batch.begin() + static_cast<int64_t>(at));
  all_with_batch(spec, [&](std::vector<int64_t>& strides) {
    strides.erase(strides.begin() + static_cast<int64_t>(at));
    return true;
  });
}

void drop_unit_batch(ContractionSpec& spec) {
  for (size_t i = spec.batch.size(); i-- > 0;)
    if (spec.batch[i] == 1) drop_batch(spec, i);
}

void merge_batch(ContractionSpec& spec) {
  for (size_t i = spec.batch.size(); i-- > 1;) {
    const int64_t inner = spec.batch[i];
    if (!all_with_batch(spec, [&](std::vector<int64_t>& strides) { return strides[i - 1] == strides[i] * inner; }))
      continue;
    spec.batch[i] *= spec.batch[i - 1];
    drop_batch(spec, i - 1);
  }
}

// The innermost batch dimension becomes rows; false when it can't.
bool fold_into_rows(ContractionSpec& spec) {
  if (spec.batch.empty() || spec.b.batch.back() != 0) return false;
  const size_t last = spec.batch.size() - 1;
  const int64_t m = spec.m;
  if (!all_with_rows(spec,
                     [&](std::vector<int64_t>& strides, int64_t& row) { return m == 1 || strides[last] == row * m; }))
    return false;
  if (m == 1) {
    all_with_rows(spec, [&](std::vector<int64_t>& strides, int64_t& row) {
      row = strides[last];
      return true;
    });
  }
  spec.m *= spec.batch[last];
  drop_batch(spec, last);
  return true;
}

// Where a dimension has one element its stride means nothing: it is set to what a dense matrix would have.
void set_unit_strides(MatrixLayout& layout, int64_t rows, int64_t columns) {
  if (rows == 1 && columns == 1) {
    layout.row = layout.column = 1;
  } else if (columns == 1) {
    layout.column = 1;
  } else if (rows == 1) {
    layout.row = layout.column == 1 ? columns : 1;
  }
}

void set_unit_strides(ContractionSpec& spec) {
  set_unit_strides(spec.a, spec.m, spec.k);
  set_unit_strides(spec.b, spec.k, spec.n);
  set_unit_strides(spec.c, spec.m, spec.n);
  for (PostOp& post : spec.post) {
    std::vector<int64_t>& strides = post.operand.strides;
    if (strides.empty()) continue;
    if (spec.n == 1) strides.back() = 0;
    if (spec.m == 1) strides[strides.size() - 2] = 0;
  }
}

}  // namespace

ContractionSpec canonical(ContractionSpec spec) {
  drop_unit_batch(spec);
  merge_batch(spec);
  while (fold_into_rows(spec)) {
  }
  set_unit_strides(spec);
  return spec;
}

bool should_transpose(const ContractionSpec& spec) {
  const bool by_columns = spec.c.row == 1 && spec.c.column != 1 && spec.n > 1 && spec.m > 1;
  return by_columns && spec.bias == ir::DType::undefined;
}

ContractionSpec transposed(ContractionSpec spec) {
  std::swap(spec.a, spec.b);
  std::swap(spec.m, spec.n);
  for (MatrixLayout* it : {&spec.a, &spec.b, &spec.c}) std::swap(it->row, it->column);
  for (PostOp& post : spec.post) {
    std::vector<int64_t>& strides = post.operand.strides;
    if (!strides.empty()) std::swap(strides[strides.size() - 2], strides.back());
  }
  spec.remember_b = false;  // it is another B
  set_unit_strides(spec);
  return spec;
}

bool is_empty(const ContractionSpec& spec) {
  return spec.m == 0 || spec.n == 0 || std::find(spec.batch.begin(), spec.batch.end(), 0) != spec.batch.end();
}

std::string invalid(const ContractionSpec& spec) {
  const size_t batches = spec.batch.size();
  for (const MatrixLayout* it : {&spec.a, &spec.b, &spec.c})
    if (it->batch.size() != batches) return "an operand has another number of batch dimensions than the product";
  for (const PostOp& post : spec.post)
    if (operand_of(post.kind) == PostOpOperand::Tensor && post.operand.strides.size() != batches + 2)
      return "an operand of a post-op has another number of dimensions than the product";
  auto repeats = [](int64_t size, int64_t stride) { return size > 1 && stride <= 0; };
  for (size_t i = 0; i < batches; ++i) {
    if (repeats(spec.batch[i], spec.c.batch[i])) return "elements of the product share memory";
    if (spec.a.batch[i] < 0 || spec.b.batch[i] < 0) return "a stride is negative";
  }
  if (repeats(spec.m, spec.c.row) || repeats(spec.n, spec.c.column)) return "elements of the product share memory";
  if (repeats(spec.m, spec.a.row) || repeats(spec.k, spec.a.column) || repeats(spec.k, spec.b.row) ||
      repeats(spec.n, spec.b.column))
    return "an operand is broadcast over a row or a column";
  return {};
}

}  // namespace graphlift::cpu
