// Owns: see host_kernels.h.
#include "backends/cpu/host_kernels.h"

#include <algorithm>
#include <unordered_map>

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

// The graph with those numbers in front of all other calls that they need nothing of: what stands between them would
// keep kernels apart, on both devices.
class NumbersFirst {
 public:
  explicit NumbersFirst(const ir::Graph& graph) : made_(std::make_unique<ir::Graph>()) {
    std::vector<const ir::Node*> others;
    for (const ir::Node* input : graph.inputs())
      known_[input] = made_->add_input(input->input_name, *input->outputs[0]);
    for (const ir::Node& node : graph.nodes())
      if (node.kind == ir::NodeKind::Call) may_move(node) ? add(node) : others.push_back(&node);
    for (const ir::Node* node : others) add(*node);
    made_->outputs() = mapped(graph.outputs());
  }

  std::unique_ptr<ir::Graph> take() { return std::move(made_); }

 private:
  bool may_move(const ir::Node& node) const {
    bool known = is_host_number(node) && ops::traits(node.op).effect == ops::Effect::None;
    for (const ir::Arg& arg : node.args)
      ir::for_each_value(arg, [&](const ir::ValueRef& value) { known = known && known_.contains(value.node); });
    return known;
  }

  ir::ArgList mapped(ir::ArgList args) const {
    for (ir::Arg& arg : args) ir::for_each_value(arg, [&](ir::ValueRef& value) { value.node = known_.at(value.node); });
    return args;
  }

  void add(const ir::Node& node) {
    ir::Node* call = made_->add_call(node.op, mapped(node.args), node.outputs, node.where);
    call->backward = node.backward;
    call->must_recompute = node.must_recompute;
    call->checkpoint = node.checkpoint;
    known_[&node] = call;
  }

  std::unique_ptr<ir::Graph> made_;
  std::unordered_map<const ir::Node*, ir::Node*> known_;
};

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
  fused_ = codegen::fuse(*NumbersFirst(graph).take(), options);
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
