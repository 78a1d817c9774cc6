// Owns: see in_place.h.
#include "backends/codegen/in_place.h"

#include <algorithm>
#include <unordered_map>

#include "ops/layout.h"
#include "ops/traits.h"

namespace graphlift::codegen {
namespace {

bool same(const Affine& a, const Affine& b) { return a.offset.same(b.offset) && ops::same(a.strides, b.strides); }

class InPlaceWriter {
 public:
  explicit InPlaceWriter(FusedGraph* fused) : fused_(*fused), graph_(*fused->graph) {
    int position = 0;
    for (ir::Node& node : graph_.nodes()) {
      position_[&node] = position;
      for (const ir::Arg& arg : node.args)
        ir::for_each_value(arg,
                           [&](const ir::ValueRef& value) { last_use_[ops::memory_owner(value).node] = position; });
      const bool safe = node.kind == ir::NodeKind::Input || node.op == kernel_op() || ops::viewed_value(node);
      if (!safe) kernels_only_from_ = position + 1;
      ++position;
    }
    for (const ir::Arg& output : graph_.outputs())
      ir::for_each_value(output, [&](const ir::ValueRef& value) { ++handed_out_[ops::memory_owner(value)]; });
  }

  void write(int output, int input) {
    const ir::Arg& arg = graph_.outputs()[static_cast<size_t>(output)];
    const ir::ValueRef* value = arg.value();
    const ir::ValueRef to{graph_.inputs()[static_cast<size_t>(input)], 0};
    if (!value || value->node->op != kernel_op() || handed_out_[*value] != 1 || handed_out_.count(to)) return;
    const int position = position_.at(value->node);
    if (position < kernels_only_from_ || last_use_[to.node] > position || !lies_alike(*value, to)) return;
    ir::ArgList& read = std::get<ir::ArgList>(value->node->args[1]);
    if (reads_view_of(read, to)) return;
    const auto found = std::find_if(read.begin(), read.end(), [&](ir::Arg& item) { return *item.value() == to; });
    const auto place = static_cast<int>(found - read.begin());
    if (found == read.end())
      read.emplace_back(to);
    else if (!merge(*value, place))
      return;
    fused_.memory[index_of(*value->node)].results[static_cast<size_t>(value->index)].target = place;
    last_use_[to.node] = position;
  }

 private:
  bool lies_alike(const ir::ValueRef& value, const ir::ValueRef& to) const {
    const ir::TensorType &a = graph_.type(value), &b = graph_.type(to);
    return a.dtype == b.dtype && a.device == b.device && ops::same(a.sizes, b.sizes) && ops::same(a.strides, b.strides);
  }

  // At which places a view that is no index map reads is not known.
  static bool reads_view_of(const ir::ArgList& read, const ir::ValueRef& to) {
    return std::any_of(read.begin(), read.end(), [&](const ir::Arg& item) {
      return *item.value() != to && ops::memory_owner(*item.value()) == to;
    });
  }

  // The buffer of a result, and that of the input it is written to, as one: what is read of it is what is written.
  bool merge(const ir::ValueRef& value, int input) {
    Kernel& kernel = fused_.kernels[index_of(*value.node)];
    KernelMemory& memory = fused_.memory[index_of(*value.node)];
    const int output = memory.buffer_of(static_cast<size_t>(value.index));
    const Affine* index = nullptr;
    for (const KernelStore& store : kernel.stores) {
      if (store.buffer != output) continue;
      if (index) return false;
      index = &store.index;
    }
    if (!index || kernel.has_reduction()) return false;
    for (const ScalarNode& node : kernel.nodes) {
      if (node.kind == ScalarNode::Kind::Reduce) return false;
      if (node.kind == ScalarNode::Kind::Load && node.buffer == input &&
          !(node.args.empty() && same(node.index, *index)))
        return false;
    }
    kernel.buffers[static_cast<size_t>(input)].written = true;
    kernel.buffers.erase(kernel.buffers.begin() + output);
    for (KernelStore& store : kernel.stores)
      store.buffer = store.buffer == output ? input : store.buffer - (store.buffer > output);
    memory.results[static_cast<size_t>(value.index)].buffer = false;
    return true;
  }

  FusedGraph& fused_;
  ir::Graph& graph_;
  std::unordered_map<const ir::Node*, int> position_, last_use_;
  std::unordered_map<ir::ValueRef, int, ir::ValueHash> handed_out_;
  int kernels_only_from_ = 0;
};

}  // namespace

void write_in_place(FusedGraph* fused, const std::vector<std::pair<int, int>>& writes) {
  if (writes.empty()) return;
  InPlaceWriter writer(fused);
  for (const auto& [output, input] : writes) writer.write(output, input);
}

}  // namespace graphlift::codegen
