// Owns: of schedule.h, what schedules and code ask of a kernel, and tilings as texts.
#include <algorithm>
#include <sstream>

#include "backends/cuda/schedule.h"
#include "base/text.h"

namespace graphlift::cuda {

using codegen::Affine;
using codegen::Kernel;
using codegen::ScalarNode;
using ir::Sym;
using Kind = ScalarNode::Kind;

int shifting_maximum(const Kernel& kernel, int node) {
  auto of = [&](int i) -> const ScalarNode& { return kernel.nodes[static_cast<size_t>(i)]; };
  auto is = [&](int i, codegen::Prim prim) { return of(i).kind == Kind::Prim && of(i).prim == prim; };
  if (of(node).kind != Kind::Reduce || of(node).reduce != codegen::ReduceKind::Sum) return -1;
  const int power = of(node).args[0];
  if (!is(power, codegen::Prim::Exp) || !is(of(power).args[0], codegen::Prim::Sub)) return -1;
  const ScalarNode& shifted = of(of(power).args[0]);
  const ScalarNode& most = of(shifted.args[1]);
  const bool fits = most.kind == Kind::Reduce && most.reduce == codegen::ReduceKind::Max &&
                    most.args[0] == shifted.args[0] && most.type == of(node).type;
  return fits ? shifted.args[1] : -1;
}

bool varies(const Kernel& kernel, const Affine& index) {
  for (size_t axis = 0; axis < index.strides.size(); ++axis)
    if (kernel.axes[axis].reduced && !index.strides[axis].same(0)) return true;
  return false;
}

bool is_place(const Kernel& kernel, int node, int axis) {
  const ScalarNode& of = kernel.nodes[static_cast<size_t>(node)];
  if (of.kind == Kind::Number) return of.integer.is_constant();
  if (of.kind == Kind::Index) return axis < 0 || of.index.strides[static_cast<size_t>(axis)].same(0);
  return of.kind == Kind::Prim &&
         std::all_of(of.args.begin(), of.args.end(), [&](int arg) { return is_place(kernel, arg, axis); });
}

bool is_steady(const Kernel& kernel, const Affine& index) {
  for (size_t axis = 0; axis < index.strides.size(); ++axis)
    if (!kernel.axes[axis].reduced && !index.strides[axis].same(0)) return false;
  return true;
}

Sym product(const Kernel& kernel, const std::vector<int>& axes) {
  Sym elements = 1;
  for (const int axis : axes) elements = elements * kernel.axes[static_cast<size_t>(axis)].extent;
  return elements;
}

Sym reach(const Kernel& kernel) {
  Sym most = 1;
  for (const auto& axis : kernel.axes) most = most * axis.extent;
  auto visit = [&](const Affine& index) {
    Sym last = max(index.offset, -index.offset);
    for (size_t axis = 0; axis < index.strides.size(); ++axis) {
      const Sym& stride = index.strides[axis];
      last = last + max(stride, -stride) * kernel.axes[axis].extent;
    }
    most = max(most, last);
  };
  for (const ScalarNode& node : kernel.nodes)
    if (node.kind == Kind::Load || node.kind == Kind::Index) visit(node.index);
  for (const auto& store : kernel.stores) visit(store.index);
  return most;
}

std::string Tiling::str() const { return cat(lanes, " ", threads, " ", steps_per_thread, " ", split_percent); }

std::optional<Tiling> tiling_from(const std::string& text) {
  Tiling made;
  std::istringstream words(text);
  if (!(words >> made.lanes >> made.threads >> made.steps_per_thread >> made.split_percent)) return std::nullopt;
  auto power = [](int value, int most) { return value > 0 && value <= most && (value & (value - 1)) == 0; };
  const bool sound = power(made.lanes, 8) && (made.threads == 0 || (made.threads >= 64 && power(made.threads, 1024))) &&
                     power(made.steps_per_thread, 64) && made.split_percent >= 0 && made.split_percent <= 1000;
  return sound ? std::optional(made) : std::nullopt;
}

}  // namespace graphlift::cuda
