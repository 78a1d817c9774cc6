// Owns: which element values a row keeps for its later phases instead of computing them again.
#include "backends/cpu/schedule.h"

namespace graphlift::cpu {
namespace {

using codegen::Kernel;
using codegen::ScalarNode;
using Kind = ScalarNode::Kind;

// On the stack of the thread that computes the row.
constexpr int64_t kMostBytes = 128 << 10;

class SpillFinder {
 public:
  SpillFinder(const Kernel& kernel, const Schedule& schedule)
      : kernel_(kernel), schedule_(schedule), spilled_(kernel.nodes.size(), false), made_(kernel.nodes.size(), false) {
    for (const ScalarNode& node : kernel.nodes) {
      bool costly = node.kind == Kind::Prim && row(node.prim).cost == codegen::PrimCost::Costly;
      for (const int arg : node.args)
        costly = costly || (schedule.is_inner[static_cast<size_t>(arg)] && costly_[static_cast<size_t>(arg)]);
      costly_.push_back(costly && node.kind != Kind::Reduce);
    }
  }

  std::vector<bool> run() {
    for (int phase = 0; phase < schedule_.phases; ++phase) {
      std::vector<bool> seen(kernel_.nodes.size(), false);
      for (size_t i = 0; i < kernel_.nodes.size(); ++i)
        if (kernel_.nodes[i].kind == Kind::Reduce && schedule_.phase[i] == phase + 1)
          visit(kernel_.nodes[i].args[0], &seen);
      for (size_t i = 0; i < kernel_.nodes.size(); ++i)
        if (schedule_.adds_across(kernel_, i, phase)) visit(kernel_.nodes[i].args[0], &seen);
      for (const auto& store : kernel_.stores)
        if (schedule_.stores_elements(store, phase)) visit(store.value, &seen);
      for (size_t i = 0; i < seen.size(); ++i) made_[i] = made_[i] || seen[i];
    }
    return spilled_;
  }

 private:
  void visit(int node, std::vector<bool>* seen) {
    const auto i = static_cast<size_t>(node);
    if (!schedule_.is_inner[i] || (*seen)[i]) return;
    if (made_[i] && costly_[i]) {
      spilled_[i] = true;
      return;
    }
    (*seen)[i] = true;
    for (const int arg : kernel_.nodes[i].args) visit(arg, seen);
  }

  const Kernel& kernel_;
  const Schedule& schedule_;
  std::vector<bool> spilled_, made_, costly_;
};

}  // namespace

void find_spills(const Kernel& kernel, Schedule* schedule) {
  schedule->spilled.assign(kernel.nodes.size(), false);
  schedule->row_elements = 0;
  if (schedule->shape != Shape::Rows || schedule->phases < 2 || schedule->cut_axis >= 0) return;
  const ir::Sym& size = kernel.axes[static_cast<size_t>(schedule->vector_axis)].extent;
  if (!size.is_constant()) return;
  int64_t elements = (size.constant() + schedule->lanes - 1) / schedule->lanes * schedule->lanes;
  for (const int axis : schedule->inner) {
    const ir::Sym& extent = kernel.axes[static_cast<size_t>(axis)].extent;
    if (!extent.is_constant()) return;
    elements *= extent.constant();
  }
  const std::vector<bool> wanted = SpillFinder(kernel, *schedule).run();
  int64_t bytes = 0;
  for (size_t i = 0; i < wanted.size(); ++i)
    if (wanted[i]) bytes += elements * ir::bytes(kernel.nodes[i].type);
  if (bytes == 0 || bytes > kMostBytes) return;
  schedule->spilled = wanted;
  schedule->row_elements = elements;
}

}  // namespace graphlift::cpu
