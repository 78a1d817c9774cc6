// Owns: the cuda backend's entry in the registry, and what it does with a graph.
#include <ATen/Context.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <optional>
#include <unordered_set>

#include "backends/codegen/fuse.h"
#include "backends/codegen/horizontal.h"
#include "backends/codegen/in_place.h"
#include "backends/codegen/tuning.h"
#include "backends/cpu/host_kernels.h"
#include "backends/cuda/compiled_kernel.h"
#include "backends/cuda/cuda.h"
#include "backends/cuda/draws.h"
#include "backends/cuda/driver.h"
#include "backends/cuda/epilogue.h"
#include "backends/cuda/graph_recorder.h"
#include "backends/cuda/kernel_call.h"
#include "backends/cuda/kernel_tuning.h"
#include "backends/cuda/matmul.h"
#include "backends/cuda/matmul_call.h"
#include "backends/cuda/matmul_tuning.h"
#include "backends/cuda/narrow_convolutions.h"
#include "backends/cuda/nvrtc.h"
#include "backends/cuda/replay.h"
#include "backends/reference/program.h"
#include "base/log.h"
#include "ops/traits.h"

namespace graphlift::cuda {
namespace {

constexpr int8_t kCpu = 0, kCuda = 1;

bool records(const backend::Options& how) { return how.mode == "reduce-overhead" || how.mode == "max-autotune"; }

bool is_kernel(const ir::Node& node) {
  return node.kind == ir::NodeKind::Call && (node.op == codegen::kernel_op() || node.op == codegen::multi_kernel_op());
}

// By buffer of a kernel, whether it is a number of the CPU: those are passed as they are. Of many parts: by the
// first's.
std::vector<bool> by_value(const codegen::FusedGraph& graph, const ir::Node& node, int8_t device_type) {
  const size_t index = codegen::index_of(node);
  const size_t kernel = node.op == codegen::kernel_op() ? index : graph.multis[index].parts[0].kernel;
  std::vector<bool> values(graph.kernels[kernel].buffers.size(), false);
  const ir::ArgList& inputs = *node.args[1].list();
  for (size_t i = 0; i < graph.memory[kernel].reads; ++i)
    values[i] = ir::type_of(*inputs[i].value()).device.type != device_type;
  return values;
}

Tuning tuning(const backend::Options& how) {
  if (!codegen::asks_for_tuning(how.mode)) return Tuning::None;
  return records(how) ? Tuning::Recorded : Tuning::Launched;
}

// Calls whose results are outputs, and read by no other call.
std::unordered_set<const ir::Node*> leaving(const ir::Graph& graph) {
  std::unordered_set<const ir::Node*> found;
  for (const ir::Arg& output : graph.outputs())
    ir::for_each_value(output, [&](const ir::ValueRef& value) { found.insert(value.node); });
  for (const ir::Node& node : graph.nodes())
    for (const ir::Arg& arg : node.args)
      ir::for_each_value(arg, [&](const ir::ValueRef& value) { found.erase(value.node); });
  return found;
}

// Products are the library's where there is one, and where their order of additions need not be fixed.
void take_products(const ir::Graph& graph, int8_t device_type, const backend::Options& how,
                   codegen::FuseOptions* options) {
  const auto first = std::find_if(graph.nodes().begin(), graph.nodes().end(),
                                  [&](const ir::Node& node) { return is_matmul(node, device_type); });
  if (first == graph.nodes().end()) return;
  std::string refusal = matmul_refusal(first->outputs[0]->device);
  if (at::globalContext().deterministicAlgorithms()) refusal = "deterministic algorithms are asked for";
  if (!refusal.empty()) return log(Artifact::PerfHints, "products are left to torch: " + refusal);
  options->takes = [device_type](const ir::Node& node) { return is_matmul(node, device_type); };
  if (how.emulate_precision_casts) return;
  options->finishes = [measured = tuning(how), leaving = leaving(graph)](const codegen::Chain& chain, int kept) {
    return finish_matmul(chain, kept, leaving.count(chain.back()) > 0, measured);
  };
  options->besides = [measured = tuning(how), sums = find_sums(graph)](const codegen::Chain& chain) {
    codegen::Chain found = sums_beside(chain, sums);
    return !found.empty() && worth_summing(chain, found, measured) ? found : codegen::Chain();
  };
}

// With draws of random numbers as parts of kernels, and narrow convolutions as products. Null: there are none.
std::unique_ptr<ir::Graph> restated(const ir::Graph& graph, int8_t device_type) {
  auto drawn = with_draws(graph, device_type == kCpu ? test_draw_rules() : draw_rules(graph));
  if (at::globalContext().deterministicAlgorithms()) return drawn;
  auto multiplied = with_products_of_patches(drawn ? *drawn : graph, device_type);
  return multiplied ? std::move(multiplied) : std::move(drawn);
}

codegen::FusedGraph fused(const ir::Graph& graph, int8_t device_type, const backend::Options& how) {
  codegen::FuseOptions options;
  options.lower.device_type = device_type;
  options.lower.round_each_call = how.emulate_precision_casts;
  options.lower.moments = codegen::MomentPasses::One;
  options.lower.skips_loads = true;
  options.lower.places = true;
  options.group.most_across = 8192;  // a thread has its part of a row in registers
  take_products(graph, device_type, how, &options);
  codegen::leave_out(how.skip, &options);
  codegen::FusedGraph made = codegen::fuse(graph, options);
  if (!records(how)) codegen::write_in_place(&made, how.writes);  // a recording's results are its own
  codegen::HorizontalOptions parts;
  parts.most_early_bytes = int64_t{8} << 20;
  parts.kind = [&](const ir::Node& node) -> std::string {
    const ir::Sym farthest = reach(made.kernels[codegen::index_of(node)]);
    if (!farthest.is_constant() || farthest.constant() >= kNarrowReach) return "";  // a table has narrow indices
    std::string bits = std::to_string(node.outputs[0]->device.index) + " ";         // a launch is on one GPU
    for (const bool value : by_value(made, node, device_type)) bits += value ? 'v' : 'm';
    return bits;
  };
  if (options.horizontal) codegen::fuse_horizontally(&made, parts);
  return made;
}

class Cuda final : public backend::Backend {
 public:
  Cuda(std::string name, int8_t device_type, size_t tiling)
      : name_(std::move(name)), device_type_(device_type), tiling_(tiling) {}

  std::string name() const override { return name_; }
  // Numbers of the CPU, and copies to it, are part of programs of a GPU.
  bool supports(ir::Device device) const override { return device.type == device_type_ || device.is_cpu(); }

  std::unique_ptr<backend::CompiledGraph> compile(const ir::Graph& graph, const std::vector<at::Tensor>& constants,
                                                  const backend::Options& how) const override {
    std::optional<cpu::HostKernels> host;
    if (device_type_ != kCpu) host.emplace(graph, how);
    const ir::Graph& numbered = host ? host->graph() : graph;
    const std::unique_ptr<ir::Graph> own = restated(numbered, device_type_);
    const codegen::FusedGraph parts = fused(own ? *own : numbered, device_type_, how);
    const int device = device_of(*parts.graph);
    if (device < 0) {
      log(Artifact::PerfHints, "nothing of a graph is on the GPU: torch's own kernels run it");
      return std::make_unique<reference::Program>(graph, constants);
    }
    if (const std::string refusal = kernel_refusal(device); !refusal.empty()) {
      log(Artifact::PerfHints, "no kernels are made for the GPU, torch's own run: " + refusal);
      return std::make_unique<reference::Program>(graph, constants);
    }
    if (device_type_ == kCuda) at::globalContext().lazyInitDevice(c10::DeviceType::CUDA);
    const DeviceFacts& facts = device_facts(device);
    const Target target{facts.architecture, facts.processors, facts.shared_bytes};
    std::optional<codegen::TuningProgress> progress;
    const std::map<size_t, Tiling> tilings = tuned_tilings(parts, target, how, &progress);
    KernelBatch batch(target);
    Kernels kernels(parts.kernels.size()), programs(parts.multis.size());
    for (const ir::Node& node : parts.graph->nodes())
      if (is_kernel(node)) add(parts, node, tilings, &batch, node.op == codegen::kernel_op() ? &kernels : &programs);
    batch.compile();
    auto native = [&](const ir::Node& node) -> std::unique_ptr<reference::NativeCall> {
      if (auto call = host ? host->make_call(node) : nullptr) return call;
      if (auto call = make_draw_call(node)) return call;
      if (node.kind == ir::NodeKind::Call && node.op == codegen::native_op()) {
        ++backend::counters().natives;
        if (progress) progress->step();
        return make_matmul_call(parts.natives[codegen::index_of(node)], tuning(how));
      }
      if (!is_kernel(node)) return nullptr;
      const size_t index = codegen::index_of(node);
      if (node.op == codegen::multi_kernel_op()) {
        backend::counters().kernels += parts.multis[index].parts.size();
        ++backend::counters().multi_kernels;
        return make_multi_kernel_call(node, parts, programs[index]);
      }
      ++backend::counters().kernels;
      return make_kernel_call(node, parts.memory[index], kernels[index]);
    };
    const bool arena = std::find(how.skip.begin(), how.skip.end(), "arena") == how.skip.end();
    auto program = std::make_unique<reference::Program>(*parts.graph, constants, native, graph, how.saved_from, arena);
    if (!records(how)) return program;
    if (const std::string why = unrecordable(graph); !why.empty()) {
      log(Artifact::PerfHints, "a graph is launched call by call, not as a CUDA graph: it has " + why);
      return program;
    }
    const c10::Device place(static_cast<c10::DeviceType>(device_type_), static_cast<c10::DeviceIndex>(device));
    return make_replayed(std::move(program), graph, place.type(), make_graph_recorder(place), how.saved_from);
  }

  bool chooses_layouts() const override { return true; }
  std::string fingerprint() const override { return name_; }

 private:
  using Kernels = std::vector<std::shared_ptr<const CompiledKernel>>;

  // Of kernels that another tiling than the usual one is faster for; and how far measuring has come.
  std::map<size_t, Tiling> tuned_tilings(const codegen::FusedGraph& parts, const Target& target,
                                         const backend::Options& how,
                                         std::optional<codegen::TuningProgress>* progress) const {
    if (tiling_ > 0) return fixed_tilings(parts, target);
    if (tuning(how) == Tuning::None) return {};
    KernelTuner tuner(parts, target, tuning(how));
    for (const ir::Node& node : parts.graph->nodes())
      if (node.kind == ir::NodeKind::Call && node.op == codegen::kernel_op())
        tuner.add(node, by_value(parts, node, device_type_));
    progress->emplace(parts.natives.size() + tuner.count());
    return tuner.run([&] { (*progress)->step(); });
  }

  std::map<size_t, Tiling> fixed_tilings(const codegen::FusedGraph& parts, const Target& target) const {
    std::map<size_t, Tiling> made;
    for (size_t i = 0; i < parts.kernels.size(); ++i) {
      const std::vector<Tiling> all = tilings(parts.kernels[i], target, {});
      made[i] = all[tiling_ % all.size()];
    }
    return made;
  }

  void add(const codegen::FusedGraph& parts, const ir::Node& node, const std::map<size_t, Tiling>& tilings,
           KernelBatch* batch, Kernels* to) const {
    const size_t index = codegen::index_of(node);
    const bool many = node.op == codegen::multi_kernel_op();
    const codegen::Kernel& kernel = many ? parts.multis[index].program : parts.kernels[index];
    const auto tiling = many ? tilings.end() : tilings.find(index);
    (*to)[index] = batch->add(kernel, by_value(parts, node, device_type_), many,
                              tiling == tilings.end() ? Tiling() : tiling->second);
  }

  // What a replay would not do again. Empty: nothing.
  std::string unrecordable(const ir::Graph& graph) const {
    for (const ir::Node& node : graph.nodes()) {
      for (const auto& type : node.outputs)
        if (type && type->device.type != device_type_) return "tensors of the CPU";
      const bool torchs = node.op.str().starts_with("aten::") && node.op.str() != "aten::_print.default";
      if (node.kind == ir::NodeKind::Call && !torchs && ops::traits(node.op).effect == ops::Effect::Write)
        return "a call that acts on more than tensors: " + std::string(node.op.str());
    }
    return "";
  }

  // The GPU that kernels are compiled for: that of the first; GPUs of one program are alike. -1: there is nothing of
  // ours.
  static int device_of(const ir::Graph& graph) {
    for (const ir::Node& node : graph.nodes())
      if (is_kernel(node) || (node.kind == ir::NodeKind::Call && node.op == codegen::native_op()))
        return std::max<int>(0, node.outputs[0]->device.index);
    return -1;
  }

  std::string name_;
  int8_t device_type_;
  size_t tiling_;
};

}  // namespace

std::string kernel_refusal(int device) {
  if (!device_facts(device).refusal.empty()) return device_facts(device).refusal;
  return nvrtc_refusal();
}

std::unique_ptr<backend::Backend> make_cuda_backend(const std::string& name, int8_t device_type, size_t tiling) {
  return std::make_unique<Cuda>(name, device_type, tiling);
}

void register_cuda_backend() {
  static std::once_flag once;
  std::call_once(once, [] { backend::register_backend(make_cuda_backend("cuda", kCuda)); });
}

std::vector<std::string> kernel_texts(const ir::Graph& graph, int8_t device_type, int architecture,
                                      const std::vector<std::pair<int, int>>& writes) {
  backend::Options how;
  how.writes = writes;
  const std::unique_ptr<ir::Graph> own = restated(graph, device_type);
  const codegen::FusedGraph parts = fused(own ? *own : graph, device_type, how);
  std::vector<std::string> texts;
  Target target;
  target.architecture = architecture;
  for (const ir::Node& node : parts.graph->nodes()) {
    if (!is_kernel(node)) continue;
    const bool many = node.op == codegen::multi_kernel_op();
    const size_t index = codegen::index_of(node);
    const codegen::Kernel& kernel = many ? parts.multis[index].program : parts.kernels[index];
    for (const Variant variant : {Variant{true, false}, Variant{false, !many}})
      texts.push_back((many ? emit_multi_kernel : emit_kernel)(kernel, schedule_kernel(kernel, target, variant),
                                                               by_value(parts, node, device_type))
                          .text);
  }
  return texts;
}

uint64_t measurements() { return measured_matmuls() + measured_kernels(); }

std::string compile_refusal() { return nvrtc_refusal(); }

std::vector<std::string> compile_texts(const std::vector<std::string>& texts, int architecture) {
  return compiled_code(texts, architecture);
}

}  // namespace graphlift::cuda
