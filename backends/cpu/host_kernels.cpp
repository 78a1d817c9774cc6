// Owns: see host_kernels.h.
#include "backends/cpu/host_kernels.h"

#include <algorithm>
#include <unordered_set>

#include "backends/codegen/horizontal.h"
#include "backends/cpu/jit.h"
#include "backends/cpu/kernel_call.h"
#include "backends/cpu/multi_kernel_call.h"
#include "base/log.h"
#include "ops/traits.h"

namespace graphlift::cpu {
namespace {

const ir::Op& host_op(bool many) {
  static const ir::Op one("graphlift::host_kernel"), several("graphlift::host_kernels");
  return many ? several : one;
}

bool is_host_number(const ir::Node& node) {
  return node.kind == ir::NodeKind::Call && !node.outputs.empty() &&
         std::all_of(node.outputs.begin(), node.outputs.end(),
                     [](const auto& type) { return type && type->device.is_cpu() && type->rank() == 0; });
}

bool may_move(const ir::Node& node, const std::unordered_set<const ir::Node*>& moved) {
  bool known = is_host_number(node) && ops::traits(node.op).effect == ops::Effect::None;
  for (const ir::Arg& arg : node.args)
    ir::for_each_value(arg, [&](const ir::ValueRef& value) {
      known = known && (value.node->kind == ir::NodeKind::Input || moved.contains(value.node));
    });
  return known;
}

// The same graph with those numbers in front of all other calls that need nothing of them: what stands between them
// would keep kernels apart, on both devices.
std::unique_ptr<ir::Graph> with_numbers_first(const ir::Graph& graph) {
  auto sorted = graph.clone();
  std::unordered_set<const ir::Node*> moved;
  ir::Node* first = nullptr;  // of the other calls
  for (auto next = sorted->nodes().begin(); next != sorted->nodes().end();) {
    ir::Node& node = *next++;
    if (node.kind != ir::NodeKind::Call) continue;
    if (!may_move(node, moved)) {
      if (!first) first = &node;
      continue;
    }
    if (!first) {
      moved.insert(&node);
      continue;
    }
    ir::Node* made = sorted->insert_call(first, node.op, node.args, node.outputs);
    made->where = node.where;
    moved.insert(made);
    for (int i = 0; i < static_cast<int>(node.outputs.size()); ++i) sorted->replace_uses({&node, i}, {made, i});
    sorted->erase(&node);
  }
  return sorted;
}

}  // namespace

HostKernels::HostKernels(const ir::Graph& graph, const backend::Options& how) : original_(graph) {
  if (std::count_if(graph.nodes().begin(), graph.nodes().end(), is_host_number) < 2) return;
  if (!jit_refusal().empty()) {
    log(Artifact::PerfHints, [] { return "numbers on the CPU are computed one by one, by torch: " + jit_refusal(); });
    return;
  }
  codegen::FuseOptions options;
  options.lower.device_type = 0;
  options.lower.round_each_call = how.emulate_precision_casts;
  options.lower.keeps = [](const ir::Node& node) { return !is_host_number(node); };
  codegen::leave_out(how.skip, &options);
  fused_ = codegen::fuse(*with_numbers_first(graph), options);
  if (options.horizontal) codegen::fuse_horizontally(&fused_);
  for (ir::Node& node : fused_.graph->nodes()) {
    const bool many = node.op == codegen::multi_kernel_op();
    if (many || node.op == codegen::kernel_op()) node.op = host_op(many);
  }
}

std::unique_ptr<reference::NativeCall> HostKernels::make_call(const ir::Node& node) const {
  if (node.op != host_op(false) && node.op != host_op(true)) return nullptr;
  const size_t index = codegen::index_of(node);
  if (node.op == host_op(false)) {
    ++backend::counters().kernels;
    return make_kernel_call(node, fused_.memory[index], compile_kernel(fused_.kernels[index]));
  }
  const codegen::MultiKernel& multi = fused_.multis[index];
  backend::counters().kernels += multi.parts.size();
  ++backend::counters().multi_kernels;
  return make_multi_kernel_call(node, fused_, compile_kernel(multi.program));
}

}  // namespace graphlift::cpu
