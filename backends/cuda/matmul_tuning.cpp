// Owns: see matmul_tuning.h.
#include "backends/cuda/matmul_tuning.h"

#include <ATen/ATen.h>
#include <c10/core/DeviceGuard.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <unordered_map>

#include "backends/codegen/tuning.h"
#include "backends/cuda/cublaslt.h"
#include "backends/cuda/matmul_list.h"
#include "backends/cuda/stopwatch.h"
#include "base/log.h"
#include "base/text.h"

namespace graphlift::cuda {
namespace {

constexpr double kSecondsPerSpec = 0.05;
constexpr int kMostHeuristics = 8;

std::atomic<uint64_t> measured = 0;

struct Choice {
  std::shared_ptr<const Matmul> made;
  double microseconds = 0;
};

struct Hash {
  size_t operator()(const MatmulSpec& spec) const { return spec.hash(); }
};

// What times depend on; alpha's last digits are not.
std::string key_of(const MatmulSpec& spec, const Place& place, Tuning tuning) {
  return cat(tuning == Tuning::Recorded ? "recorded " : "", "product on ", gpu_name(place), " by cuBLASLt ",
             cublaslt().version, ": ", spec.str());
}

// --- memory to measure on --------------------------------------------------------------------------------------------

// Different numbers, since a GPU is faster with equal ones.
at::Tensor memory(int64_t elements, const MatmulSpec& spec, ir::DType dtype) {
  const auto options = at::TensorOptions(torch_layer::to_torch(dtype)).device(torch_layer::to_torch(spec.device));
  const int64_t period = std::min<int64_t>(elements, 1 << 16);
  const at::Tensor some = at::linspace(-1, 1, period, options);
  return some.repeat({(elements + period - 1) / period});
}

at::Tensor memory(const MatmulSpec& spec, const MatrixLayout& layout, int64_t rows, int64_t columns, ir::DType dtype) {
  const int64_t last = (spec.batch - 1) * layout.batch + (rows - 1) * layout.row + (columns - 1) * layout.column;
  return memory(last + 1, spec, dtype);
}

struct Operands {
  std::vector<at::Tensor> held;
  MatmulOperands given;

  explicit Operands(const MatmulSpec& spec) {
    auto hold = [&](at::Tensor tensor) {
      held.push_back(std::move(tensor));
      return held.back().data_ptr();
    };
    given.a = hold(memory(spec, spec.a, spec.m, spec.k, spec.dtype));
    given.b = hold(memory(spec, spec.b, spec.k, spec.n, spec.dtype));
    given.d = hold(memory(spec, spec.d, spec.m, spec.n, spec.out));
    if (spec.beta != 0) given.c = hold(memory(spec, spec.c, spec.m, spec.n, spec.out));
    if (spec.has_aux()) given.aux = hold(memory(spec, spec.aux, spec.m, spec.n, spec.dtype));
    if (spec.bias) given.bias = hold(memory(spec.n, spec, spec.dtype));
    if (spec.sums) given.sums = hold(memory(spec.m, spec, spec.out));
  }
};

// --- measuring -------------------------------------------------------------------------------------------------------

Choice tune(const MatmulSpec& spec, const Place& place, Tuning tuning, const std::string& key) {
  std::string why;
  std::vector<std::shared_ptr<const Matmul>> candidates;
  for (auto& made : make_lt_matmuls(spec, kMostHeuristics, &why)) candidates.push_back(std::move(made));
  candidates.push_back(make_torch_matmul(spec));
  const Operands operands(spec);
  std::vector<std::function<void()>> ways;
  for (const auto& candidate : candidates) ways.emplace_back([&] { candidate->run(operands.given); });
  const std::vector<Time> times = measure(place, ways, kSecondsPerSpec);
  ++measured;
  const size_t best = quickest(times, tuning);
  log(Artifact::PerfHints, [&] {
    std::string text = cat("measured ", key, ": the ", best + 1, ". of");
    for (const Time& time : times) append(&text, cat(" ", std::to_string(time.device)));
    return text + " us, torch's last";
  });
  codegen::remember_choice(key, cat(std::to_string(times[best].device), " ", candidates[best]->name()));
  return {candidates[best], times[best].device};
}

// "microseconds name".
Choice remembered(const MatmulSpec& spec, const std::string& key) {
  const std::string text = codegen::remembered_choice(key);
  char* end = nullptr;
  const double microseconds = std::strtod(text.c_str(), &end);
  if (end == text.c_str() || *end != ' ') return {};
  return {make_matmul(end + 1, spec), microseconds};
}

Choice choice(const MatmulSpec& spec, Tuning tuning) {
  const Place place(torch_layer::to_torch(spec.device));
  const c10::DeviceGuard guard(place.device);
  // Held by the GIL.
  static auto& known = *new std::array<std::unordered_map<MatmulSpec, Choice, Hash>, 3>;
  auto& here = known[static_cast<size_t>(tuning)];
  if (const auto found = here.find(spec); found != here.end()) return found->second;
  const std::string key = key_of(spec, place, tuning);
  Choice made = remembered(spec, key);
  if (!made.made) {
    const bool empty = std::min({spec.batch, spec.m, spec.n, spec.k}) <= 0;
    if (empty || !may_measure(place)) return {find_matmul(spec), 0};
    try {
      made = tune(spec, place, tuning, key);
    } catch (const c10::OutOfMemoryError&) {
      log(Artifact::PerfHints, cat("not measured, there is no memory for it: ", spec.str()));
      return {find_matmul(spec), 0};
    }
  }
  return here.emplace(spec, std::move(made)).first->second;
}

// --- what stands behind a product ------------------------------------------------------------------------------------

// What is left to the product when a kernel finishes it.
MatmulSpec unfinished(MatmulSpec spec) {
  spec.activation = Activation::None;
  spec.alpha = 1;
  spec.beta = 0;
  spec.aux = spec.c = {};
  if (!spec.sums) spec.out = spec.dtype;
  spec.sums = false;
  return spec;
}

// Torch's element-wise kernel takes as long as one of ours: both wait for memory.
double finishing_time(const MatmulSpec& spec, const Place& place) {
  const at::Tensor from = memory(spec.batch * spec.m * spec.n, spec, spec.dtype), beside = from.clone();
  at::Tensor to = at::empty(from.sizes(), from.options().dtype(torch_layer::to_torch(spec.out)));
  at::Tensor summed;
  if (spec.sums) summed = memory(spec.k * spec.m, spec, spec.dtype).view({spec.k, spec.m});
  auto way = [&] {
    if (spec.sums)
      summed.sum(0);
    else if (spec.activation == Activation::Relu)
      at::relu_out(to, from);
    else if (spec.activation == Activation::Gelu || spec.activation == Activation::GeluKept)
      at::gelu_out(to, from, "tanh");
    else if (spec.out != spec.dtype && spec.beta == 0)
      to.copy_(from);
    else
      at::add_out(to, from, beside);
  };
  return measure(place, {way}, kSecondsPerSpec / 5)[0].device;
}

}  // namespace

std::shared_ptr<const Matmul> tuned_matmul(const MatmulSpec& spec, Tuning tuning) { return choice(spec, tuning).made; }

bool worth_finishing(const MatmulSpec& spec, Tuning tuning) {
  const Place place(torch_layer::to_torch(spec.device));
  const c10::DeviceGuard guard(place.device);
  const Choice whole = choice(spec, tuning);
  if (whole.made->name() == kTorchMatmul) return false;
  const MatmulSpec plain = unfinished(spec);
  if (whole.microseconds == 0 || plain == spec) return true;
  const std::string key = cat("finishing of ", key_of(spec, place, tuning));
  std::string kept = codegen::remembered_choice(key);
  if (kept.empty()) {
    double apart = 0;
    try {
      apart = choice(plain, tuning).microseconds + finishing_time(spec, place);
    } catch (const c10::OutOfMemoryError&) {
      return true;
    }
    kept = whole.microseconds <= apart ? "with the product" : "in a kernel";
    codegen::remember_choice(key, kept);
    log(Artifact::PerfHints, [&] {
      return cat("measured ", key, ": ", kept, "; ", std::to_string(whole.microseconds), " us together, ",
                 std::to_string(apart), " us apart");
    });
  }
  return kept == "with the product";
}

uint64_t measured_matmuls() { return measured; }

}  // namespace graphlift::cuda
