// Owns: see kernel_tuning.h.
#include "backends/cuda/kernel_tuning.h"

#include <ATen/ATen.h>
#include <c10/core/DeviceGuard.h>

#include <algorithm>
#include <atomic>
#include <set>

#include "backends/codegen/tuning.h"
#include "backends/cuda/kernel_call.h"
#include "backends/cuda/nvrtc.h"
#include "base/log.h"
#include "base/text.h"
#include "ops/layout.h"

namespace graphlift::cuda {
namespace {

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

Place place_of(const ir::Node& node) { return Place(torch_layer::to_torch(node.outputs[0]->device)); }

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
  const std::string key = cat(tuning_ == Tuning::Recorded ? "recorded " : "", "kernel on ", gpu_name(place_of(node)),
                              " by NVRTC ", nvrtc_version(), ":\n", print(kernel), bits);
  added_.push_back({&node, by_value, key, {}, {}});
}

Tiling KernelTuner::measured(const Added& it, const Place& place) const {
  const size_t index = codegen::index_of(*it.node);
  std::vector<at::Tensor> held;
  std::vector<const at::Tensor*> inputs;
  for (const ir::Arg& arg : *it.node->args[1].list()) held.push_back(memory(ir::type_of(*arg.value())));
  for (const at::Tensor& tensor : held) inputs.push_back(&tensor);
  std::vector<at::Tensor> outputs(it.node->outputs.size());
  std::vector<std::shared_ptr<const reference::NativeCall>> calls;
  std::vector<std::function<void()>> ways;
  for (const auto& one : it.compiled) {
    calls.push_back(make_kernel_call(*it.node, graph_.memory[index], one));
    ways.emplace_back([&, call = calls.back().get()] {
      for (at::Tensor& output : outputs) output.reset();
      call->run(inputs.data(), outputs.data(), {});
    });
  }
  const std::vector<Time> times = measure(place, ways, kSecondsPerKernel);
  ++measured_count;
  const size_t best = quickest(times, tuning_);
  log(Artifact::PerfHints, [&] {
    std::string text = cat("measured kernel ", index, ": tiling ", it.candidates[best].str(), " of");
    for (size_t i = 0; i < times.size(); ++i)
      append(&text, cat(" [", it.candidates[i].str(), "] ", std::to_string(times[i].device)));
    return text + " us";
  });
  return it.candidates[best];
}

// All that has to be measured is compiled together, in threads.
void KernelTuner::compile_candidates(Known* known) {
  KernelBatch batch(target_);
  std::set<std::string> seen;
  for (Added& it : added_) {
    if (known->count(it.key)) continue;
    if (const auto tiling = tiling_from(codegen::remembered_choice(it.key))) {
      known->emplace(it.key, *tiling);
      continue;
    }
    if (!seen.insert(it.key).second) continue;
    const codegen::Kernel& kernel = graph_.kernels[codegen::index_of(*it.node)];
    it.candidates = tilings(kernel, target_, {});
    for (const Tiling& tiling : it.candidates) it.compiled.push_back(batch.add(kernel, it.by_value, false, tiling));
  }
  batch.compile();
}

std::map<size_t, Tiling> KernelTuner::run(const std::function<void()>& step) {
  static auto& known = *new Known;  // held by the GIL
  compile_candidates(&known);
  std::map<size_t, Tiling> chosen;
  for (Added& it : added_) {
    step();
    const Place place = place_of(*it.node);
    const c10::DeviceGuard guard(place.device);
    if (it.compiled.size() > 1 && may_measure(place)) {
      try {
        known[it.key] = measured(it, place);
        codegen::remember_choice(it.key, known[it.key].str());
      } catch (const c10::OutOfMemoryError&) {
        log(Artifact::PerfHints, "a kernel is not measured, there is no memory for it");
      }
    }
    it.compiled.clear();
    if (const auto found = known.find(it.key); found != known.end())
      chosen[codegen::index_of(*it.node)] = found->second;
  }
  return chosen;
}

uint64_t measured_kernels() { return measured_count; }

}  // namespace graphlift::cuda
