// Owns: see kernel_tuning.h.
#include "backends/cuda/kernel_tuning.h"

#include <ATen/ATen.h>
#include <c10/core/DeviceGuard.h>

#include <algorithm>
#include <atomic>

#include "backends/codegen/tuning.h"
#include "backends/cuda/compiled_kernel.h"
#include "backends/cuda/kernel_call.h"
#include "backends/cuda/nvrtc.h"
#include "base/log.h"
#include "base/text.h"
#include "ops/layout.h"

namespace graphlift::cuda {
namespace {

constexpr double kAhead = 0.97;
constexpr double kSecondsPerKernel = 0.03;
constexpr int64_t kWorthwhileBytes = int64_t{1} << 20;

std::atomic<uint64_t> measured_count = 0;

template <class Visit>
void for_each_tensor(const ir::Node& node, Visit visit) {
  for (const ir::Arg& arg : node.args)
    ir::for_each_value(arg, [&](const ir::ValueRef& value) { visit(ir::type_of(value)); });
  for (const auto& type : node.outputs)
    if (type) visit(*type);
}

bool is_worth_measuring(const ir::Node& node, const codegen::Kernel& kernel) {
  bool constant = std::all_of(kernel.axes.begin(), kernel.axes.end(),
                              [](const codegen::KernelAxis& axis) { return axis.extent.is_constant(); });
  int64_t bytes = 0;
  for_each_tensor(node, [&](const ir::TensorType& type) {
    constant = constant && ir::is_constant(type.sizes) && ir::is_constant(type.strides);
    if (constant) bytes += ops::product(type.sizes).constant() * ir::bytes(type.dtype);
  });
  return constant && bytes >= kWorthwhileBytes;
}

// Different numbers; places and flags are 0.
at::Tensor memory(const ir::TensorType& type) {
  std::vector<int64_t> sizes, strides;
  int64_t elements = 1;
  for (size_t i = 0; i < type.sizes.size(); ++i) {
    sizes.push_back(type.sizes[i].constant());
    strides.push_back(type.strides[i].constant());
    if (sizes.back() == 0) elements = 0;
    elements += elements == 0 ? 0 : (sizes.back() - 1) * strides.back();
  }
  const auto options = at::TensorOptions(torch_layer::to_torch(type.dtype)).device(torch_layer::to_torch(type.device));
  const at::Tensor flat = ir::is_floating(type.dtype)
                              ? at::linspace(0.25, 1, elements, options.dtype(at::kFloat)).to(options.dtype())
                              : at::zeros({elements}, options);
  return flat.as_strided(sizes, strides);
}

}  // namespace

void KernelTuner::add(const ir::Node& node, const std::vector<bool>& by_value) {
  const codegen::Kernel& kernel = graph_.kernels[codegen::index_of(node)];
  if (!is_worth_measuring(node, kernel)) return;
  std::string bits;
  for (const bool value : by_value) bits += value ? 'v' : 'm';
  added_.push_back({&node, by_value, cat(print(kernel), bits)});
}

Tiling KernelTuner::measured(const Added& it, const Place& place) const {
  const size_t index = codegen::index_of(*it.node);
  const codegen::Kernel& kernel = graph_.kernels[index];
  const std::vector<Tiling> candidates = tilings(kernel, target_, {});
  if (candidates.size() < 2 || !may_measure(place)) return {};
  KernelBatch batch(target_);
  std::vector<std::shared_ptr<const CompiledKernel>> compiled;
  for (const Tiling& tiling : candidates) compiled.push_back(batch.add(kernel, it.by_value, false, tiling));
  batch.compile();
  std::vector<at::Tensor> held;
  std::vector<const at::Tensor*> inputs;
  for (const ir::Arg& arg : *it.node->args[1].list()) held.push_back(memory(ir::type_of(*arg.value())));
  for (const at::Tensor& tensor : held) inputs.push_back(&tensor);
  std::vector<at::Tensor> outputs(it.node->outputs.size());
  std::vector<std::shared_ptr<const reference::NativeCall>> calls;
  std::vector<std::function<void()>> ways;
  for (const auto& one : compiled) {
    calls.push_back(make_kernel_call(*it.node, graph_.memory[index], one));
    ways.emplace_back([&, call = calls.back().get()] {
      for (at::Tensor& output : outputs) output.reset();
      call->run(inputs.data(), outputs.data(), {});
    });
  }
  const std::vector<Time> times = measure(place, ways, kSecondsPerKernel);
  ++measured_count;
  size_t best = 0;
  for (size_t i = 1; i < times.size(); ++i)
    if (times[i].counted(tuning_) < times[best].counted(tuning_)) best = i;
  if (times[best].counted(tuning_) > kAhead * times[0].counted(tuning_)) best = 0;
  log(Artifact::PerfHints, [&] {
    std::string text = cat("measured kernel ", index, ": tiling ", candidates[best].str(), " of");
    for (size_t i = 0; i < times.size(); ++i)
      append(&text, cat(" [", candidates[i].str(), "] ", std::to_string(times[i].device)));
    return text + " us";
  });
  return candidates[best];
}

std::map<size_t, Tiling> KernelTuner::run(const std::function<void()>& step) {
  static auto& known = *new std::map<std::string, Tiling>;  // held by the GIL
  std::map<size_t, Tiling> chosen;
  for (const Added& it : added_) {
    const Place place(torch_layer::to_torch(it.node->outputs[0]->device));
    const c10::DeviceGuard guard(place.device);
    const std::string key = cat(tuning_ == Tuning::Recorded ? "recorded " : "", "kernel on ", gpu_name(place),
                                " by NVRTC ", nvrtc_version(), ":\n", it.key);
    auto found = known.find(key);
    if (found == known.end()) {
      std::optional<Tiling> tiling = tiling_from(codegen::remembered_choice(key));
      if (!tiling) {
        try {
          tiling = measured(it, place);
        } catch (const c10::OutOfMemoryError&) {
          log(Artifact::PerfHints, "a kernel is not measured, there is no memory for it");
          continue;
        }
        codegen::remember_choice(key, tiling->str());
      }
      found = known.emplace(key, *tiling).first;
    }
    chosen[codegen::index_of(*it.node)] = found->second;
    step();
  }
  return chosen;
}

uint64_t measured_kernels() { return measured_count; }

}  // namespace graphlift::cuda
