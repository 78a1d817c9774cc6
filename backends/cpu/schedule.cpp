// Owns: see schedule.h.
#include "backends/cpu/schedule.h"

#include <algorithm>

namespace graphlift::cpu {
namespace {

using codegen::Affine;
using codegen::Kernel;
using codegen::ScalarNode;
using Kind = ScalarNode::Kind;

constexpr int64_t kElementChunk = 4096;

// Along axes that places from data vary with, a load steps by anything.
Affine steps_of(const ScalarNode& load, const std::vector<uint64_t>& axes) {
  constexpr int64_t kFar = 1 << 20;
  Affine index = load.index;
  for (const int arg : load.args)
    for (size_t axis = 0; axis < index.strides.size(); ++axis)
      if (axes[static_cast<size_t>(arg)] >> axis & 1) index.strides[axis] = kFar;
  return index;
}

template <class Visit>
void for_each_access(const Kernel& kernel, Visit visit) {
  const std::vector<uint64_t> axes = codegen::find_axes(kernel);
  for (const ScalarNode& node : kernel.nodes)
    if (node.kind == Kind::Load) visit(node.args.empty() ? node.index : steps_of(node, axes), 1);
  for (const auto& store : kernel.stores) visit(store.index, 2);
}

bool varies_reduced(const Kernel& kernel, const Affine& index) {
  for (size_t axis = 0; axis < index.strides.size(); ++axis)
    if (kernel.axes[axis].reduced && !index.strides[axis].same(0)) return true;
  return false;
}

bool varies_with_all(const Kernel& kernel, const Affine& index) {
  for (size_t axis = 0; axis < index.strides.size(); ++axis)
    if (!kernel.axes[axis].extent.same(1) && index.strides[axis].same(0)) return false;
  return true;
}

// How many accesses step by one element along an axis, less those that would have to gather. What is read or written
// once per row, or is read again and again, counts little.
int unit_steps(const Kernel& kernel, int axis) {
  int score = 0;
  const bool reduction = kernel.has_reduction();
  for_each_access(kernel, [&](const Affine& index, int weight) {
    if (reduction ? varies_reduced(kernel, index) : varies_with_all(kernel, index)) weight *= 16;
    const ir::Sym& stride = index.strides[static_cast<size_t>(axis)];
    if (stride.same(1))
      score += 2 * weight;
    else if (!stride.same(0))
      score -= weight;
  });
  return score;
}

int64_t size_hint(const ir::Sym& extent) { return extent.is_constant() ? extent.constant() : 64; }

int choose_vector_axis(const Kernel& kernel) {
  int best = -1, best_score = 0;
  const bool across = kernel.has_across();
  for (size_t i = kernel.axes.size(); i-- > 0;) {
    const int axis = static_cast<int>(i);
    if (across && !kernel.axes[i].reduced) continue;
    int score = 4 * unit_steps(kernel, axis) + (kernel.axes[i].reduced ? 1 : 0);
    if (size_hint(kernel.axes[i].extent) < 4) score -= 4;
    if (best < 0 || score > best_score) best = axis, best_score = score;
  }
  return best;
}

int64_t largest_stride(const Kernel& kernel, int axis) {
  int64_t largest = 0;
  for_each_access(kernel, [&](const Affine& index, int) {
    const ir::Sym& stride = index.strides[static_cast<size_t>(axis)];
    largest = std::max(largest, stride.is_constant() ? std::abs(stride.constant()) : int64_t{1} << 30);
  });
  return largest;
}

bool is_long(const Kernel& kernel) {
  constexpr int kLong = 24, kCostly = 20;  // instructions
  int instructions = 0;
  for (const ScalarNode& node : kernel.nodes)
    if (node.kind == Kind::Prim) instructions += row(node.prim).cost == codegen::PrimCost::Costly ? kCostly : 1;
  return !kernel.has_reduction() && instructions >= kLong;
}

int choose_lanes(const Kernel& kernel, const Schedule& schedule, const Target& target) {
  int widest = 4;
  for (const ScalarNode& node : kernel.nodes)
    if (node.kind == Kind::Load || node.kind == Kind::Prim) widest = std::max(widest, ir::bytes(node.type));
  // Two registers of each value hide the latency of sums. A long loop of elements has other work meanwhile, and takes
  // half as long to compile with one.
  int lanes = (is_long(kernel) ? 1 : 2) * target.vector_bytes / widest;
  if (schedule.shape == Shape::Columns) lanes *= 2;
  const ir::Sym& extent = kernel.axes[static_cast<size_t>(schedule.vector_axis)].extent;
  while (extent.is_constant() && lanes > 4 && lanes / 2 >= extent.constant()) lanes /= 2;
  // Registers that would be mostly empty.
  while (extent.is_constant() && lanes > target.vector_bytes / widest && extent.constant() % lanes != 0 &&
         extent.constant() < 2 * lanes)
    lanes /= 2;
  return lanes;
}

void find_levels(const Kernel& kernel, Schedule* schedule) {
  for (const ScalarNode& node : kernel.nodes) {
    bool inner = false;
    int phase = 0;
    for (const int arg : node.args) {
      inner = inner || schedule->is_inner[static_cast<size_t>(arg)];
      phase = std::max(phase, schedule->phase[static_cast<size_t>(arg)]);
    }
    if (node.kind == Kind::Load || node.kind == Kind::Index) inner = inner || schedule->varies(node.index);
    if (node.kind == Kind::Reduce) inner = false, ++phase;
    schedule->is_inner.push_back(inner);
    schedule->phase.push_back(phase);
    if (node.kind == Kind::Reduce) schedule->phases = std::max(schedule->phases, phase);
    if (node.kind == Kind::Across) schedule->phases = std::max(schedule->phases, phase + 1);
  }
  schedule->late = kernel.find_late();
  for (const auto& store : kernel.stores)
    if (schedule->varies(store.index) && !schedule->late[static_cast<size_t>(store.value)])
      schedule->phases = std::max(schedule->phases, schedule->phase[static_cast<size_t>(store.value)] + 1);
}

// Columns of a unit. Rows of a few hundred bytes each, far from one another, are slow to read when there are many.
int64_t choose_columns(const Kernel& kernel, const Schedule& schedule) {
  constexpr int64_t kLeastRows = 128, kMost = 4096, kStackBytes = 32 << 10, kCacheBytes = 512 << 10;
  int64_t rows = 1;
  for (const auto& axis : kernel.axes)
    if (axis.reduced) rows = std::min(rows * (axis.extent.is_constant() ? axis.extent.constant() : 4096), 1L << 40);
  if (rows < kLeastRows || unit_steps(kernel, schedule.vector_axis) <= 0) return schedule.lanes;
  int64_t kept = 0, widest = 4;  // bytes per column that each row comes by
  for (size_t i = 0; i < kernel.nodes.size(); ++i) {
    const ScalarNode& node = kernel.nodes[i];
    if (node.kind == Kind::Load) widest = std::max<int64_t>(widest, ir::bytes(node.type));
    if (!schedule.is_inner[i] && node.kind != Kind::Number) kept += ir::bytes(node.type);
  }
  // Later phases find a unit's elements in the cache, if that is possible at all.
  const bool again = schedule.phases > 1 && rows * schedule.lanes * widest <= kCacheBytes;
  const ir::Sym& extent = kernel.axes[static_cast<size_t>(schedule.vector_axis)].extent;
  int64_t columns = schedule.lanes;
  while (2 * columns <= kMost && 2 * columns * kept <= kStackBytes &&
         !(again && 2 * columns * rows * widest > kCacheBytes) &&
         !(extent.is_constant() && columns >= extent.constant()))
    columns *= 2;
  return columns;
}

// The processor's own look-ahead ends with a page. A piece of many pages is not worth asking for, and would leave the
// cache before it is read.
int choose_ahead(const Kernel& kernel, const Schedule& schedule) {
  constexpr int64_t kShortest = 64, kLongest = 4096;
  if (schedule.shape != Shape::Rows || schedule.inner.empty()) return -1;
  const ir::Sym& piece = kernel.axes[static_cast<size_t>(schedule.vector_axis)].extent;
  const bool fits = piece.is_constant() && piece.constant() >= kShortest && piece.constant() <= kLongest;
  return fits ? schedule.inner.back() : -1;
}

}  // namespace

bool Schedule::is_inner_axis(int axis) const {
  if (axis == vector_axis) return shape != Shape::Columns;
  return std::find(inner.begin(), inner.end(), axis) != inner.end();
}

bool Schedule::varies(const Affine& index) const {
  for (size_t axis = 0; axis < index.strides.size(); ++axis)
    if (is_inner_axis(static_cast<int>(axis)) && !index.strides[axis].same(0)) return true;
  return false;
}

int64_t Schedule::steps_from(const Kernel& kernel, size_t level) const {
  constexpr int64_t kMany = int64_t{1} << 40;
  int64_t steps = 1;
  auto more = [&](int axis, int64_t step) {
    const ir::Sym& size = kernel.axes[static_cast<size_t>(axis)].extent;
    steps = size.is_constant() && steps < kMany ? steps * std::max<int64_t>(1, size.constant() / step) : kMany;
  };
  for (; level < inner.size(); ++level) more(inner[level], 1);
  if (shape == Shape::Rows && vector_axis >= 0) more(vector_axis, lanes);
  return steps;
}

bool Schedule::stores_elements(const codegen::KernelStore& store, int at_phase) const {
  const auto value = static_cast<size_t>(store.value);
  return varies(store.index) && phase[value] == at_phase && !late[value];
}

bool Schedule::adds_across(const Kernel& kernel, size_t node, int at_phase) const {
  return kernel.nodes[node].kind == Kind::Across && phase[node] == at_phase;
}

Schedule schedule_kernel(const Kernel& kernel, const Target& target) {
  Schedule schedule;
  schedule.vector_axis = choose_vector_axis(kernel);
  const int vector = schedule.vector_axis;
  if (kernel.has_reduction()) {
    const bool rows = vector >= 0 && kernel.axes[static_cast<size_t>(vector)].reduced;
    schedule.shape = rows ? Shape::Rows : Shape::Columns;
  }
  for (size_t i = 0; i < kernel.axes.size(); ++i) {
    const int axis = static_cast<int>(i);
    if (axis == vector) continue;
    (kernel.axes[i].reduced ? schedule.inner : schedule.outer).push_back(axis);
  }
  auto slower = [&](int a, int b) { return largest_stride(kernel, a) > largest_stride(kernel, b); };
  std::stable_sort(schedule.outer.begin(), schedule.outer.end(), slower);
  std::stable_sort(schedule.inner.begin(), schedule.inner.end(), slower);
  if (vector >= 0) schedule.lanes = choose_lanes(kernel, schedule, target);
  if (schedule.shape == Shape::Elements) schedule.chunk = kElementChunk;
  find_levels(kernel, &schedule);
  if (schedule.shape == Shape::Columns) schedule.chunk = choose_columns(kernel, schedule);
  schedule.ahead = choose_ahead(kernel, schedule);
  find_blocks(kernel, &schedule);
  if (!schedule.in_blocks) find_cuts(kernel, &schedule);
  find_spills(kernel, &schedule);
  return schedule;
}

}  // namespace graphlift::cpu
