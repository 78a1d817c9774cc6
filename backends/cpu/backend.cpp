// Owns: the cpu backend's entry in the registry, and what it does with a graph.
#include <algorithm>
#include <mutex>

#include "backends/codegen/horizontal.h"
#include "backends/codegen/in_place.h"
#include "backends/codegen/tuning.h"
#include "backends/cpu/check_call.h"
#include "backends/cpu/contraction.h"
#include "backends/cpu/contraction_call.h"
#include "backends/cpu/convolution_call.h"
#include "backends/cpu/cpu.h"
#include "backends/cpu/epilogue.h"
#include "backends/cpu/jit.h"
#include "backends/cpu/kernel_call.h"
#include "backends/cpu/multi_kernel_call.h"
#include "backends/cpu/row_sum_call.h"
#include "backends/reference/program.h"
#include "base/log.h"

namespace graphlift::cpu {
namespace {

std::unique_ptr<reference::NativeCall> make_native_call(const codegen::NativeOperation& operation,
                                                        const NativeOptions& options = {}) {
  if (is_contraction(*operation.node)) return make_contraction_call(operation, options);
  if (is_convolution(*operation.node)) return make_convolution_call(operation, options);
  if (is_row_sum(*operation.node)) return operation.epilogue.empty() ? make_row_sum_call(operation) : nullptr;
  return nullptr;
}

// What can't be refused later: the call's views are gone by then.
bool can_take(const ir::Node& node) {
  if (is_row_sum(node)) return true;
  const bool contraction = is_contraction(node);
  if (!contraction && !is_convolution(node)) return false;
  if (contraction && !(ir::is_constant(node.outputs[0]->sizes) && ir::is_constant(node.outputs[0]->strides)))
    return node.outputs[0]->dtype == ir::DType::float32;
  return make_native_call(codegen::describe({&node})) != nullptr;
}

codegen::Finish finish(const codegen::Chain& chain, int kept) {
  if (kept >= 0) return codegen::Finish::No;
  const codegen::NativeOperation operation = codegen::describe(chain);
  const auto post = post_ops(operation);
  if (!post) return codegen::Finish::No;
  if (is_plain_view(*chain.back()) || !worth_finishing(operation, *post)) return codegen::Finish::Through;
  return make_native_call(operation) ? codegen::Finish::Here : codegen::Finish::No;
}

// Which of a call's operands are weights as they came: what was computed of one is another tensor in each run.
std::vector<bool> weights_among(const ir::Node& call, const ir::Graph& graph, const std::vector<int>& weights) {
  std::vector<bool> out;
  const auto is_weight = [&](const ir::ValueRef& value) {
    out.push_back(std::any_of(weights.begin(), weights.end(),
                              [&](int input) { return graph.inputs()[static_cast<size_t>(input)] == value.node; }));
  };
  for (const ir::Arg& arg : call.args) ir::for_each_value(arg, is_weight);
  return out;
}

std::string text_of(const codegen::FusedGraph& fused) {
  std::string text = ir::print(*fused.graph);
  for (size_t i = 0; i < fused.kernels.size(); ++i)
    text += "kernel " + std::to_string(i) + ":\n" + codegen::print(fused.kernels[i]);
  return text;
}

void compile_all(const codegen::FusedGraph& fused) {
  std::vector<const codegen::Kernel*> kernels;
  for (const ir::Node& node : fused.graph->nodes()) {
    if (node.kind != ir::NodeKind::Call) continue;
    if (node.op == codegen::kernel_op()) kernels.push_back(&fused.kernels[codegen::index_of(node)]);
    if (node.op == codegen::multi_kernel_op()) kernels.push_back(&fused.multis[codegen::index_of(node)].program);
  }
  compile_kernels(kernels);
}

class Cpu final : public backend::Backend {
 public:
  std::string name() const override { return "cpu"; }
  bool supports(ir::Device device) const override { return device.is_cpu(); }

  std::unique_ptr<backend::CompiledGraph> compile(const ir::Graph& graph, const std::vector<at::Tensor>& constants,
                                                  const backend::Options& how) const override {
    if (!jit_refusal().empty()) {
      log(Artifact::PerfHints, [] { return "no kernels are made for the CPU, torch's own run: " + jit_refusal(); });
      return std::make_unique<reference::Program>(graph, constants);
    }
    if (how.mode == "reduce-overhead")
      log(Artifact::PerfHints, "mode \"reduce-overhead\" does on CPU what \"default\" does: calls run no Python there");
    codegen::FuseOptions options;
    options.lower.device_type = 0;
    options.lower.gathers = true;
    options.lower.moments = codegen::MomentPasses::OneAboutFirst;
    options.lower.round_each_call = how.emulate_precision_casts;
    options.group.few_results = true;   // they are cut into pieces
    options.group.most_across = 16384;  // a block's results stay in the cache
    options.takes = can_take;
    options.finishes = finish;
    codegen::leave_out(how.skip, &options);
    codegen::FusedGraph fused = codegen::fuse(graph, options);
    codegen::write_in_place(&fused, how.writes);
    if (options.horizontal) codegen::fuse_horizontally(&fused);
    log(Artifact::OutputCode, [&] { return text_of(fused); });
    compile_all(fused);
    std::optional<codegen::TuningProgress> progress;
    if (codegen::asks_for_tuning(how.mode)) progress.emplace(fused.natives.size());
    auto native = [&](const ir::Node& node) -> std::unique_ptr<reference::NativeCall> {
      if (node.op == codegen::kernel_op()) {
        ++backend::counters().kernels;
        const size_t index = codegen::index_of(node);
        return make_kernel_call(node, fused.memory[index], compile_kernel(fused.kernels[index]));
      }
      if (node.op == codegen::multi_kernel_op()) {
        const codegen::MultiKernel& multi = fused.multis[codegen::index_of(node)];
        backend::counters().kernels += multi.parts.size();
        ++backend::counters().multi_kernels;
        return make_multi_kernel_call(node, fused, compile_kernel(multi.program));
      }
      if (node.op == codegen::check_op()) return make_check_call(fused.checks[codegen::index_of(node)]);
      if (node.op == codegen::native_op()) {
        ++backend::counters().natives;
        if (progress) progress->step();
        return make_native_call(fused.natives[codegen::index_of(node)],
                                {progress.has_value(), weights_among(node, *fused.graph, how.weights)});
      }
      return nullptr;
    };
    auto program =
        std::make_unique<reference::Program>(*fused.graph, constants, native, graph, SIZE_MAX, options.arena);
    rest_compiler();
    return program;
  }

  bool chooses_layouts() const override { return true; }
  std::string fingerprint() const override { return "cpu"; }
};

}  // namespace

const std::string& kernel_refusal() { return jit_refusal(); }

std::string onednn_refusal() {
  ContractionSpec spec;
  spec.m = spec.n = spec.k = 2;
  spec.a = spec.b = spec.c = {{}, 2, 1};
  std::string why;
  return make_contraction("onednn", spec, &why) ? "" : why;
}

void register_cpu_backend() {
  static std::once_flag once;
  std::call_once(once, [] { backend::register_backend(std::make_unique<Cpu>()); });
}

}  // namespace graphlift::cpu
