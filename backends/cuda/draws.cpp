// Owns: see draws.h.
#include "backends/cuda/draws.h"

#include <ATen/Context.h>
#include <ATen/cuda/PhiloxCudaState.h>
#include <ATen/ops/_fused_dropout.h>
#include <ATen/ops/ones.h>
#include <dlfcn.h>

#include <algorithm>
#include <cmath>
#include <mutex>

#include "backends/cuda/driver.h"
#include "backends/cuda/launch.h"
#include "base/log.h"
#include "ops/layout.h"
#include "ops/traits.h"
#include "torch/convert.h"

namespace graphlift::cuda {
namespace {

using ir::DType;
using ir::Sym;

constexpr int64_t kThreads = 256, kUnrolled = 4;  // of torch's kernels: of a block, numbers of a draw

const ir::Op& draw_op() {
  static const ir::Op op("graphlift::draw.default");
  return op;
}
const ir::Op& dropout_op() {
  static const ir::Op op("graphlift::dropout.default");
  return op;
}
const ir::Op& torch_dropout_op() {
  static const ir::Op op("aten::native_dropout.default");
  return op;
}

// --- torch's generator -----------------------------------------------------------------------------------------------
// A library that the process has loaded with torch; nothing of it is needed to build.
using TakeState = at::PhiloxCudaState (*)(void* generator, uint64_t increment);
TakeState take_state() {
  static const TakeState found = [] {
    void* library = dlopen("libtorch_cuda.so", RTLD_NOW | RTLD_NOLOAD);
    constexpr const char* kName = "_ZN2at17CUDAGeneratorImpl17philox_cuda_stateEm";
    return library ? reinterpret_cast<TakeState>(dlsym(library, kName)) : nullptr;
  }();
  return found;
}

struct TestState {
  std::mutex mutex;
  int64_t seed = 0, offset = 0;
  bool recorded = false;
  int vector = 0;
};
TestState& test_state() {
  static auto* state = new TestState;
  return *state;
}

at::PhiloxCudaState next_state(c10::Device device, uint64_t increment) {
  if (device.is_cpu()) {
    TestState& state = test_state();
    const std::lock_guard lock(state.mutex);
    const auto before = static_cast<uint64_t>(state.offset);
    if (state.recorded) return {&state.seed, &state.offset, 0};
    state.offset += static_cast<int64_t>(increment);
    return {static_cast<uint64_t>(state.seed), before};
  }
  at::Generator generator = at::globalContext().defaultGenerator(device);
  const std::lock_guard lock(generator.mutex());
  return take_state()(generator.unsafeGetGeneratorImpl(), increment);
}

class DrawCall final : public reference::NativeCall {
 public:
  DrawCall(c10::Device device, Sym increment) : device_(device), increment_(std::move(increment)) {}

  void run(const at::Tensor* const*, at::Tensor* outputs, std::span<const int64_t> symbols) const override {
    const at::PhiloxCudaState state = next_state(device_, static_cast<uint64_t>(increment_.eval(symbols)));
    const int64_t within = state.captured_ ? static_cast<int64_t>(state.offset_intragraph_) : -1;
    const int64_t values[] = {static_cast<int64_t>(state.seed_.val), static_cast<int64_t>(state.offset_.val), within};
    for (size_t i = 0; i < std::size(values); ++i) {
      outputs[i] = at::Tensor(at::detail::empty_cpu({}, at::kLong));
      *outputs[i].mutable_data_ptr<int64_t>() = values[i];
    }
  }

 private:
  const c10::Device device_;
  const Sym increment_;
};

// --- how torch's kernel shares its draws -----------------------------------------------------------------------------
struct Numbers {
  uint32_t x[4];
};

Numbers philox(uint64_t seed, uint64_t counter, uint64_t sequence) {
  uint32_t key[2] = {static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)};
  Numbers c{{static_cast<uint32_t>(counter), static_cast<uint32_t>(counter >> 32), static_cast<uint32_t>(sequence),
             static_cast<uint32_t>(sequence >> 32)}};
  for (int round = 0; round < 10; ++round) {
    const uint64_t a = uint64_t{0xD2511F53} * c.x[0], b = uint64_t{0xCD9E8D57} * c.x[2];
    c = {{static_cast<uint32_t>(b >> 32) ^ c.x[1] ^ key[0], static_cast<uint32_t>(b),
          static_cast<uint32_t>(a >> 32) ^ c.x[3] ^ key[1], static_cast<uint32_t>(a)}};
    key[0] += 0x9E3779B9;
    key[1] += 0xBB67AE85;
  }
  return c;
}

int64_t most_threads(int device) {
  const DeviceFacts& facts = device_facts(device);
  return int64_t{facts.processors} * (facts.processor_threads / kThreads * kThreads);
}

int64_t threads_for(int64_t elements, int64_t most) {
  return std::min(most, (elements + kThreads - 1) / kThreads * kThreads);
}

// Whether a draw of torch's own gives what this layout says, for elements all over it.
bool agrees(const at::Tensor& mask, uint64_t seed, double keep, int64_t threads, int vector) {
  const auto* kept = mask.const_data_ptr<uint8_t>();
  const int64_t elements = mask.numel(), step = std::max<int64_t>(1, elements / 16384);
  constexpr int64_t kFirst = 4096;
  for (int64_t at = 0; at < elements; at += at < kFirst ? 1 : step) {
    const float drawn =
        uniform_at(seed, 0, static_cast<uint64_t>(at), static_cast<uint64_t>(threads), static_cast<uint64_t>(vector));
    if ((drawn < static_cast<float>(keep)) != (kept[at] != 0)) return false;
  }
  return true;
}

// 0: none that is known. Few elements, and more than all threads take at once.
int ask_torch(DType dtype, c10::Device device, int64_t most_threads) {
  constexpr uint64_t kSeed = 0x9876543210fedcba;
  constexpr double kKeep = 0.625;
  const int64_t sizes[] = {16 * 1024, 2 * 16 * most_threads + 1024};
  at::Generator generator = at::globalContext().defaultGenerator(device).clone();
  std::vector<at::Tensor> masks;
  for (const int64_t size : sizes) {
    generator.set_current_seed(kSeed);
    const at::Tensor ones = at::ones({size}, at::TensorOptions().device(device).dtype(torch_layer::to_torch(dtype)));
    masks.push_back(std::get<1>(at::_fused_dropout(ones, kKeep, generator)).cpu());
  }
  for (const int vector : {4, 8, 16, 2, 1}) {
    bool right = true;
    for (size_t i = 0; i < masks.size(); ++i)
      right = right && agrees(masks[i], kSeed, kKeep, threads_for(sizes[i], most_threads), vector);
    if (right) return vector;
  }
  return 0;
}

int vector_of(DType dtype, int device, int64_t most_threads) {
  static std::mutex mutex;
  static auto* known = new std::map<std::pair<DType, int>, int>;
  const std::lock_guard lock(mutex);
  const auto found = known->find({dtype, device});
  if (found != known->end()) return found->second;
  const c10::Device place(c10::DeviceType::CUDA, static_cast<c10::DeviceIndex>(device));
  int capturing = 0;  // then nothing can be asked
  check_driver(driver().cuStreamIsCapturing(Place(place).stream(), &capturing), "asking for a recording");
  if (capturing != 0) return 0;
  const int vector = ask_torch(dtype, place, most_threads);
  if (vector == 0) log(Artifact::PerfHints, "draws stay torch's: its kernel shares them in a way that is not known");
  return known->emplace(std::pair(dtype, device), vector).first->second;
}

// --- the graph -------------------------------------------------------------------------------------------------------
bool is_dropout(const ir::Node& node) {
  if (node.kind != ir::NodeKind::Call || node.op != torch_dropout_op()) return false;
  const bool* train = std::get_if<bool>(&node.args[2]);
  const double* p = std::get_if<double>(&node.args[1]);
  return train && *train && p && *p >= 0 && *p < 1 && node.outputs[0] && node.outputs[1];
}

// Whether x lies as fresh memory does, so that torch's kernel takes whole vectors from its first element on.
bool is_fresh(const ir::Node& node) {
  const ir::ValueRef value = *node.args[0].value();
  const ir::TensorType& type = ir::type_of(value);
  const bool input = ops::memory_owner(value).node->kind == ir::NodeKind::Input;
  return !input && type.offset.same(0) && ops::same(type.strides, ir::contiguous_strides(type.sizes)) &&
         ops::same(node.outputs[0]->strides, type.strides) && ops::same(node.outputs[1]->strides, type.strides);
}

// As many as divide the elements. 0: that is not known.
int vector_for(const Sym& elements, int most) {
  if (mod(elements, most).same(0)) return most;
  if (!elements.is_constant()) return 0;
  while (elements.constant() % most != 0) most /= 2;
  return most;
}

void replace(ir::Graph* graph, ir::Node* node, const DrawRules& rules) {
  const auto known = rules.vectors.find(ir::type_of(*node->args[0].value()).dtype);
  if (known == rules.vectors.end() || known->second == 0 || !is_fresh(*node)) return;
  const Sym elements = ir::type_of(*node->args[0].value()).numel();
  if (elements.is_constant() && elements.constant() == 0) return;
  const int vector = vector_for(elements, known->second);
  if (vector == 0) return;
  const Sym threads = min(Sym(rules.most_threads), ceildiv(elements, kThreads) * kThreads);
  const Sym increment = (floordiv(elements - 1, threads * kUnrolled) + 1) * kUnrolled;
  ir::TensorType number;
  number.dtype = DType::int64;
  ir::Node* draw = graph->insert_call(
      node, draw_op(),
      {ir::Arg{Sym(node->outputs[0]->device.type)}, ir::Arg{Sym(node->outputs[0]->device.index)}, ir::Arg{increment}},
      {number, number, number});
  ir::Node* made = graph->insert_call(
      node, dropout_op(),
      {node->args[0], ir::Arg{1.0 - std::get<double>(node->args[1])}, ir::Arg{ir::ValueRef{draw, 0}},
       ir::Arg{ir::ValueRef{draw, 1}}, ir::Arg{ir::ValueRef{draw, 2}}, ir::Arg{threads}, ir::Arg{Sym(vector)}},
      node->outputs);
  draw->where = made->where = node->where;
  draw->backward = made->backward = node->backward;
  for (int i = 0; i < 2; ++i) graph->replace_uses({node, i}, {made, i});
  graph->erase(node);
}

}  // namespace

float uniform_at(uint64_t seed, uint64_t offset, uint64_t place, uint64_t threads, uint64_t vector) {
  const uint64_t group = place / vector;
  uint64_t thread = group % threads, call = group / threads, part = place % vector;
  if (vector == 1) {
    part = call % kUnrolled;
    call /= kUnrolled;
  } else if (vector > kUnrolled) {
    call = call * (vector / kUnrolled) + part / kUnrolled;
    part %= kUnrolled;
  }
  const float drawn = static_cast<float>(philox(seed, offset / kUnrolled + call, thread).x[part]);
  return std::fma(drawn, 0x1p-32f, 0x1p-33f);
}

DrawRules draw_rules(const ir::Graph& graph) {
  DrawRules rules;
  for (const ir::Node& node : graph.nodes()) {
    if (!is_dropout(node) || !node.outputs[0]->device.is_cuda()) continue;
    const ir::TensorType& type = *node.outputs[0];
    const int device = std::max<int>(0, type.device.index);
    if (rules.most_threads == 0) rules.most_threads = most_threads(device);
    const bool alike = rules.most_threads == most_threads(device);  // GPUs of one program are
    if (!alike || rules.most_threads == 0 || !take_state()) return {};
    if (!rules.vectors.contains(type.dtype))
      rules.vectors[type.dtype] = vector_of(type.dtype, device, rules.most_threads);
  }
  return rules;
}

std::unique_ptr<ir::Graph> with_draws(const ir::Graph& graph, const DrawRules& rules) {
  const auto& nodes = graph.nodes();
  if (rules.vectors.empty() || std::none_of(nodes.begin(), nodes.end(), is_dropout)) return nullptr;
  auto made = graph.clone();
  std::vector<ir::Node*> found;
  for (ir::Node& node : made->nodes())
    if (is_dropout(node)) found.push_back(&node);
  for (ir::Node* node : found) replace(made.get(), node, rules);
  return made;
}

std::unique_ptr<reference::NativeCall> make_draw_call(const ir::Node& node) {
  if (node.kind != ir::NodeKind::Call || node.op != draw_op()) return nullptr;
  const c10::Device device(static_cast<c10::DeviceType>(node.args[0].sym()->constant()),
                           static_cast<c10::DeviceIndex>(node.args[1].sym()->constant()));
  return std::make_unique<DrawCall>(device, *node.args[2].sym());
}

void set_draw_state(uint64_t seed, uint64_t offset, bool recorded, int vector) {
  TestState& state = test_state();
  const std::lock_guard lock(state.mutex);
  state.seed = static_cast<int64_t>(seed);
  state.offset = static_cast<int64_t>(offset);
  state.recorded = recorded;
  state.vector = vector;
}

DrawRules test_draw_rules() {
  DrawRules rules;
  if (test_state().vector == 0) return rules;
  constexpr int64_t kUsual = 132 * 2048;  // texts need no driver
  rules.most_threads = driver().refusal.empty() ? most_threads(0) : kUsual;
  for (const DType dtype : {DType::float32, DType::float64, DType::float16, DType::bfloat16})
    rules.vectors[dtype] = test_state().vector;
  return rules;
}

uint64_t draw_offset() { return static_cast<uint64_t>(test_state().offset); }

}  // namespace graphlift::cuda
