// Owns: see axis_map.h.
#include "backends/codegen/axis_map.h"

#include "base/error.h"

namespace graphlift::codegen {
namespace {

using Kind = TensorNode::Kind;

bool same_map(const std::optional<std::vector<int>>& a, const std::vector<int>& b) { return a && *a == b; }

// The dims of a view, from those of its operand.
std::optional<PartialMap> through_view(const TensorNode& view, const PartialMap& operand) {
  const TensorNode& from = *view.args[0];
  PartialMap result(view.sizes.size());
  for (size_t i = 0; i < view.sizes.size(); ++i)
    if (view.sizes[i].same(1)) result[i].emplace();
  for (size_t i = 0; i < view.view.size(); ++i) {
    const ViewDim& dim = view.view[i];
    if (dim.from < 0) {
      if (!from.sizes[i].same(1)) return std::nullopt;
      continue;
    }
    const auto to = static_cast<size_t>(dim.from);
    if (!dim.whole() || !from.sizes[i].same(view.sizes[to])) return std::nullopt;
    if (!operand[i]) continue;
    if (result[to] && !same_map(result[to], *operand[i])) return std::nullopt;
    result[to] = operand[i];
  }
  return result;
}

// Takes axes of a row-major list until they make up one dim; splits the last one where it is too large.
class AxisReader {
 public:
  AxisReader(Group* group, std::vector<int> axes) : group_(*group), axes_(std::move(axes)) {}

  std::optional<std::vector<int>> take(const ir::Sym& size) {
    std::vector<int> taken;
    ir::Sym product = 1;
    while (!product.same(size)) {
      if (next_ >= axes_.size()) return std::nullopt;
      const int axis = axes_[next_];
      const ir::Sym extent = group_.extents[static_cast<size_t>(axis)];
      const ir::Sym grown = product * extent;
      if (size.is_constant() && grown.is_constant() && grown.constant() > size.constant()) {
        if (!split(axis, product.constant(), size.constant())) return std::nullopt;
        continue;
      }
      taken.push_back(axis);
      product = grown;
      ++next_;
    }
    return taken;
  }

  bool done() const { return next_ == axes_.size(); }

 private:
  // The outer part completes the dim, the inner part is left over.
  bool split(int axis, int64_t product, int64_t size) {
    if (product == 0 || size % product != 0) return false;
    const int64_t outer = size / product, extent = group_.extents[static_cast<size_t>(axis)].constant();
    if (outer <= 1 || extent % outer != 0) return false;
    const int inner = static_cast<int>(group_.extents.size());
    split_axis(&group_, axis, extent / outer);
    for (size_t i = 0; i < axes_.size(); ++i)
      if (axes_[i] == axis) axes_.insert(axes_.begin() + static_cast<long>(i) + 1, inner);
    return true;
  }

  Group& group_;
  std::vector<int> axes_;
  size_t next_ = 0;
};

std::optional<PartialMap> through_reshape(Group* group, const TensorNode& reshape, const PartialMap& operand) {
  std::vector<int> axes;
  for (size_t i = 0; i < operand.size(); ++i) {
    if (!operand[i]) return std::nullopt;
    axes.insert(axes.end(), operand[i]->begin(), operand[i]->end());
  }
  AxisReader reader(group, std::move(axes));
  PartialMap result(reshape.sizes.size());
  for (size_t i = 0; i < reshape.sizes.size(); ++i) {
    const auto dim = reader.take(reshape.sizes[i]);
    if (!dim) return std::nullopt;
    result[i] = *dim;
  }
  if (!reader.done()) return std::nullopt;
  return result;
}

}  // namespace

bool Group::has_reduction() const {
  for (const bool flag : reduced)
    if (flag) return true;
  return false;
}

void split_axis(Group* group, int axis, int64_t inner) {
  auto& extent = group->extents[static_cast<size_t>(axis)];
  const int added = static_cast<int>(group->extents.size());
  extent = extent.constant() / inner;
  group->extents.push_back(inner);
  group->reduced.push_back(group->reduced[static_cast<size_t>(axis)]);
  for (auto& [node, map] : group->maps)
    for (auto& dim : map)
      for (size_t i = 0; i < dim.size(); ++i)
        if (dim[i] == axis) dim.insert(dim.begin() + static_cast<long>(++i), added);
}

bool unify(PartialMap* into, const PartialMap& from) {
  for (size_t i = 0; i < from.size(); ++i) {
    if (!from[i]) continue;
    if ((*into)[i] && *(*into)[i] != *from[i]) return false;
    (*into)[i] = from[i];
  }
  return true;
}

PartialMap broadcast_map(const PartialMap& operand, const ir::Dims& operand_sizes, const ir::Dims& sizes) {
  PartialMap result(sizes.size());
  const size_t lead = sizes.size() - operand_sizes.size();
  for (size_t i = 0; i < operand_sizes.size(); ++i)
    if (sizes[lead + i].same(1) || !operand_sizes[i].same(1)) result[lead + i] = operand[i];
  return result;
}

std::optional<PartialMap> pull(Group* group, const Value node, const std::unordered_set<const TensorNode*>& inlined) {
  if (auto found = group->maps.find(node); found != group->maps.end())
    return PartialMap(found->second.begin(), found->second.end());
  if (node->kind == Kind::View || node->kind == Kind::Reshape) {
    const auto operand = pull(group, node->args[0], inlined);
    if (!operand) return std::nullopt;
    return node->kind == Kind::View ? through_view(*node, *operand) : through_reshape(group, *node, *operand);
  }
  if (!node->elementwise() || !inlined.count(node)) return std::nullopt;
  std::optional<PartialMap> result;
  for (const Value arg : node->aligned()) {
    // A split while a later operand is read changes the lists that were read before, so that they are read again.
    const size_t axes = group->extents.size();
    const auto known = pull(group, arg, inlined);
    if (group->extents.size() != axes) return pull(group, node, inlined);
    if (!known) continue;
    if (!result) result.emplace(node->sizes.size());
    if (!unify(&*result, broadcast_map(*known, arg->sizes, node->sizes))) return std::nullopt;
  }
  return result;
}

}  // namespace graphlift::codegen
