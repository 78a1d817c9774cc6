// Owns: see kernel_build.h.
#include "backends/codegen/kernel_build.h"

#include <algorithm>
#include <map>

#include "base/error.h"
#include "ops/layout.h"

namespace graphlift::codegen {
namespace {

using Kind = TensorNode::Kind;
using Scalar = ScalarNode::Kind;
using Indices = std::vector<Affine>;  // per dim

struct Geometry {
  ir::Dims sizes, strides;
  ir::Sym offset = 0;
};

// Strides of a reshape without a copy. Of sizes that vary, only memory without gaps is known to allow one.
std::optional<ir::Dims> reshaped_strides(const Geometry& from, const ir::Dims& sizes) {
  if (ops::same(from.strides, ir::contiguous_strides(from.sizes))) return ir::contiguous_strides(sizes);
  if (!ir::is_constant(from.sizes) || !ir::is_constant(from.strides) || !ir::is_constant(sizes)) return std::nullopt;
  ir::ShapeEnv nothing_varies;
  ir::TensorType type;
  type.sizes = from.sizes;
  type.strides = from.strides;
  return ops::view_strides(nothing_varies, type, sizes);
}

class KernelBuilder {
 public:
  KernelBuilder(const ir::Graph& graph, const Grouping& grouping, const Group& group)
      : graph_(graph), grouping_(grouping), group_(group) {}

  BuiltKernel run() {
    for (size_t i = 0; i < group_.extents.size(); ++i) kernel().axes.push_back({group_.extents[i], group_.reduced[i]});
    for (const Value node : group_.members)
      if (node->kind != Kind::Join) scalars_[node] = member(node);
    for (const Value node : group_.members)
      if (grouping_.stored.count(node)) node->kind == Kind::Join ? store_parts(node) : store(node, node, Affine{});
    find_levels();
    merge_axes(&kernel());
    return std::move(result_);
  }

 private:
  Kernel& kernel() { return result_.kernel; }

  Affine constant(const ir::Sym& value) const { return {value, std::vector<ir::Sym>(group_.extents.size(), 0)}; }

  static void add_scaled(Affine* into, const Affine& index, const ir::Sym& factor) {
    into->offset = into->offset + index.offset * factor;
    for (size_t axis = 0; axis < index.strides.size(); ++axis)
      into->strides[axis] = into->strides[axis] + index.strides[axis] * factor;
  }

  // The indices of a node with a map in the group.
  Indices own_indices(const AxisMap& map) const {
    Indices indices;
    for (const auto& dim : map) {
      Affine index = constant(0);
      ir::Sym stride = 1;
      for (size_t i = dim.size(); i-- > 0;) {
        index.strides[static_cast<size_t>(dim[i])] = stride;
        stride = stride * group_.extents[static_cast<size_t>(dim[i])];
      }
      indices.push_back(std::move(index));
    }
    return indices;
  }

  int add(ScalarNode node) {
    const std::string key = text(node);
    const auto [found, fresh] = known_.emplace(key, static_cast<int>(kernel().nodes.size()));
    if (fresh) kernel().nodes.push_back(std::move(node));
    return found->second;
  }

  static std::string text(const ScalarNode& node) {
    std::string key = std::to_string(static_cast<int>(node.kind)) + "," + std::to_string(static_cast<int>(node.type)) +
                      "," + std::to_string(static_cast<int>(node.prim)) + "," +
                      std::to_string(static_cast<int>(node.reduce)) + "," + std::to_string(node.buffer) + ",";
    char real[32];
    std::snprintf(real, sizeof real, "%a", node.real);
    key += real + ("," + node.integer.str());
    for (const int arg : node.args) key += ",v" + std::to_string(arg);
    for (const ir::Sym& step : node.steps) key += ",s" + step.str();
    key += "@" + node.index.offset.str();
    for (const ir::Sym& stride : node.index.strides) key += "," + stride.str();
    return key;
  }

  // --- values --------------------------------------------------------------------------------------------------------
  int member(const TensorNode* node) {
    if (node->kind == Kind::Reduce) {
      const Value operand = node->args[0];
      const int value = evaluate(operand, own_indices(group_.maps.at(operand)));
      ScalarNode made{group_.across.count(node) ? Scalar::Across : Scalar::Reduce, node->dtype, {value}};
      made.reduce = node->reduce;
      return add(std::move(made));
    }
    return primitive(node, own_indices(group_.maps.at(node)));
  }

  int primitive(const TensorNode* node, const Indices& indices) {
    if (node->kind == Kind::Gather) return gather(*node, indices);
    std::vector<int> args;
    for (const Value arg : node->args) args.push_back(evaluate(arg, operand_indices(*node, *arg, indices)));
    if (node->prim == Prim::Copy) return args[0];
    if (auto index = joined_index(*node, args)) {
      ScalarNode made{Scalar::Index, node->dtype, {}};
      made.index = std::move(*index);
      return add(std::move(made));
    }
    ScalarNode made{Scalar::Prim, node->dtype, std::move(args)};
    made.prim = node->prim;
    return add(std::move(made));
  }

  // A place computed from places is a place: the sum of two, the multiple of one.
  std::optional<Affine> joined_index(const TensorNode& node, const std::vector<int>& args) {
    if (node.dtype != ir::DType::int64 || (node.prim != Prim::Add && node.prim != Prim::Mul)) return std::nullopt;
    const ScalarNode *a = &kernel().nodes[static_cast<size_t>(args[0])],
                     *b = &kernel().nodes[static_cast<size_t>(args[1])];
    if (a->kind == Scalar::Number) std::swap(a, b);
    if (a->kind != Scalar::Index || (b->kind != Scalar::Index && b->kind != Scalar::Number)) return std::nullopt;
    if (node.prim == Prim::Mul && b->kind != Scalar::Number) return std::nullopt;
    Affine index = constant(0);
    if (node.prim == Prim::Mul) {
      add_scaled(&index, a->index, b->integer);
      return index;
    }
    add_scaled(&index, a->index, 1);
    add_scaled(&index, b->kind == Scalar::Index ? b->index : constant(b->integer), 1);
    return index;
  }

  int gather(const TensorNode& node, const Indices& indices) {
    const TensorNode* source = node.args.back();
    const auto geometry = geometry_of(source);
    GL_CHECK(geometry.has_value(), "a view that does not lie in its memory");
    ScalarNode made{Scalar::Load, computed_as(*source), {}};
    made.buffer = buffer_of(memory_of(source), /*written=*/false);
    Indices own = viewed_indices(node, indices);
    for (size_t i = 0; i < own.size(); ++i) {
      if (node.picks[i] < 0) continue;
      own[i] = constant(0);
      const Value place = node.args[static_cast<size_t>(node.picks[i])];
      made.args.push_back(evaluate(place, operand_indices(node, *place, indices)));
      made.steps.push_back(geometry->strides[i]);
    }
    made.index = place(*geometry, own);
    result_.checks.insert(result_.checks.end(), node.checks.begin(), node.checks.end());
    return add(std::move(made));
  }

  Indices operand_indices(const TensorNode& node, const TensorNode& operand, const Indices& indices) const {
    Indices own;
    const size_t lead = node.sizes.size() - operand.sizes.size();
    for (size_t i = 0; i < operand.sizes.size(); ++i)
      own.push_back(operand.sizes[i].same(1) ? constant(0) : indices[lead + i]);
    return own;
  }

  int evaluate(const TensorNode* node, const Indices& indices) {
    const TensorNode* memory = memory_of(node);
    if (const auto found = scalars_.find(memory); found != scalars_.end()) return found->second;
    switch (memory->kind) {
      case Kind::Number:
        return number(*memory);
      case Kind::Buffer:
        return load(node, indices);
      case Kind::Iota:
      case Kind::Map:
      case Kind::Gather:
      case Kind::Reduce:
      case Kind::Join:
        break;
      default:
        GL_CHECK(false, "a view without memory");
    }
    if (memory->computed() && !grouping_.inlined.count(memory)) return load(node, indices);
    if (node->kind == Kind::View) return evaluate(node->args[0], viewed_indices(*node, indices));
    GL_CHECK(!node->is_view(), "a reshape of an inlined value");
    if (node->kind == Kind::Iota) {
      ScalarNode made{Scalar::Index, ir::DType::int64, {}};
      made.index = indices[static_cast<size_t>(node->dim)];
      return add(std::move(made));
    }
    return primitive(node, indices);
  }

  Indices viewed_indices(const TensorNode& view, const Indices& indices) const {
    Indices own;
    for (const ViewDim& dim : view.view) {
      Affine index = constant(dim.start);
      if (dim.from >= 0) add_scaled(&index, indices[static_cast<size_t>(dim.from)], dim.step);
      own.push_back(std::move(index));
    }
    return own;
  }

  int number(const TensorNode& node) {
    ScalarNode made{Scalar::Number, node.dtype, {}};
    made.real = node.real;
    made.integer = node.integer;
    return add(std::move(made));
  }

  int load(const TensorNode* node, const Indices& indices) {
    const TensorNode* memory = memory_of(node);
    const auto geometry = geometry_of(node);
    GL_CHECK(geometry.has_value(), "a view that does not lie in its memory");
    ScalarNode made{Scalar::Load, computed_as(*memory), {}};
    made.buffer = buffer_of(memory, /*written=*/false);
    made.index = place(*geometry, indices);
    return add(std::move(made));
  }

  Affine place(const Geometry& geometry, const Indices& indices) const {
    Affine index = constant(geometry.offset);
    for (size_t i = 0; i < indices.size(); ++i) add_scaled(&index, indices[i], geometry.strides[i]);
    return index;
  }

  // --- memory --------------------------------------------------------------------------------------------------------
  std::optional<Geometry> geometry_of(const TensorNode* node) const {
    if (!node->is_view()) {
      const ir::TensorType type = stored_type(graph_, grouping_, *node, {});
      return Geometry{type.sizes, type.strides, 0};
    }
    const TensorNode* memory = memory_of(node);
    if (node->value && memory->value) {
      const ir::TensorType& type = graph_.type(*node->value);
      if (ops::same(type.sizes, node->sizes))
        return Geometry{type.sizes, type.strides, type.offset - graph_.type(*memory->value).offset};
    }
    auto geometry = geometry_of(node->args[0]);
    if (!geometry || node->kind == Kind::Alias) return std::nullopt;
    if (node->kind == Kind::Reshape) {
      const auto strides = reshaped_strides(*geometry, node->sizes);
      if (!strides) return std::nullopt;
      return Geometry{node->sizes, *strides, geometry->offset};
    }
    Geometry viewed{node->sizes, ir::Dims(node->sizes.size(), 0), geometry->offset};
    for (size_t i = 0; i < node->view.size(); ++i) {
      const ViewDim& dim = node->view[i];
      viewed.offset = viewed.offset + dim.start * geometry->strides[i];
      if (dim.from < 0) continue;
      ir::Sym& stride = viewed.strides[static_cast<size_t>(dim.from)];
      stride = stride + dim.step * geometry->strides[i];
    }
    return viewed;
  }

  int buffer_of(const TensorNode* memory, bool written) {
    for (size_t i = 0; i < result_.buffers.size(); ++i)
      if (result_.buffers[i] == memory) return static_cast<int>(i);
    result_.buffers.push_back(memory);
    kernel().buffers.push_back({stored_type(graph_, grouping_, *memory, {}).dtype, written});
    result_.outputs += written;
    return static_cast<int>(result_.buffers.size()) - 1;
  }

  // Stores a member's elements into `target`'s memory, `shift` further on.
  void store(const TensorNode* node, const TensorNode* target, const Affine& shift) {
    const ir::TensorType type = stored_type(graph_, grouping_, *target, {});
    Affine index = place({type.sizes, type.strides, 0}, own_indices(group_.maps.at(node)));
    index.offset = index.offset + shift.offset;
    kernel().stores.push_back({scalars_.at(node), buffer_of(target, true), std::move(index)});
  }

  void store_parts(const TensorNode* join) {
    const auto dim = static_cast<size_t>(join->dim);
    const ir::Sym stride = stored_type(graph_, grouping_, *join, {}).strides[dim];
    Affine shift;
    for (const Value part : join->args) {
      store(part, join, shift);
      shift.offset = shift.offset + part->sizes[dim] * stride;
    }
  }

  // --- levels --------------------------------------------------------------------------------------------------------
  bool varies(const Affine& index) const {
    for (size_t axis = 0; axis < index.strides.size(); ++axis) {
      const ir::Sym& stride = index.strides[axis];
      if (group_.reduced[axis] && !stride.same(0)) return true;
    }
    return false;
  }

  void find_levels() {
    auto& nodes = kernel().nodes;
    for (ScalarNode& node : nodes) {
      for (const int arg : node.args) {
        const ScalarNode& operand = nodes[static_cast<size_t>(arg)];
        node.inner = node.inner || operand.inner;
        node.phase = std::max(node.phase, operand.phase);
      }
      if (node.kind == Scalar::Load || node.kind == Scalar::Index) node.inner = node.inner || varies(node.index);
      if (node.kind != Scalar::Reduce) continue;
      nodes[static_cast<size_t>(node.args[0])].inner = true;
      node.inner = false;
      node.phase += 1;
    }
  }

  const ir::Graph& graph_;
  const Grouping& grouping_;
  const Group& group_;
  BuiltKernel result_;
  std::unordered_map<const TensorNode*, int> scalars_;
  std::map<std::string, int> known_;
};

}  // namespace

ir::TensorType stored_type(const ir::Graph& graph, const Grouping& grouping, const TensorNode& node,
                           ir::Device device) {
  if (node.value) {
    ir::TensorType type = graph.type(*node.value);
    const auto chosen = grouping.layouts.find(&node);
    if (chosen != grouping.layouts.end()) type.strides = chosen->second, type.offset = 0;
    return type;
  }
  return {node.stored_as.value_or(node.dtype), device, node.sizes, ir::contiguous_strides(node.sizes), 0, false};
}

BuiltKernel build_kernel(const ir::Graph& graph, const Grouping& grouping, const Group& group) {
  return KernelBuilder(graph, grouping, group).run();
}

}  // namespace graphlift::codegen
