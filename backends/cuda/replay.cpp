// Owns: see replay.h.
#include "backends/cuda/replay.h"

#include <ATen/ATen.h>
#include <c10/util/SmallVector.h>

#include <algorithm>
#include <mutex>
#include <optional>
#include <unordered_map>

#include "base/log.h"
#include "ops/traits.h"

namespace graphlift::cuda {
namespace {

constexpr int kRunsBefore = 2;         // as it is: libraries make their workspaces, and inputs show which of them move
constexpr size_t kMostRecordings = 4;  // of one set of sizes
constexpr size_t kMostSizes = 8;

// Memory that recordings write their results to. An input that lies there comes back in later calls.
class OwnedMemory {
 public:
  void add(const void* place) { change(place, 1); }
  void drop(const void* place) { change(place, -1); }
  bool holds(const at::Tensor& tensor) const {
    const std::lock_guard lock(mutex_);
    return counts_.count(tensor.storage().data()) > 0;
  }

 private:
  void change(const void* place, int by) {
    const std::lock_guard lock(mutex_);
    if ((counts_[place] += by) == 0) counts_.erase(place);
  }
  mutable std::mutex mutex_;
  std::unordered_map<const void*, int> counts_;
};

OwnedMemory& owned() {
  static auto* memory = new OwnedMemory;
  return *memory;
}

// The same memory as another tensor, with a history and a version of its own.
at::Tensor same_memory(const at::Tensor& tensor) {
  at::Tensor made = at::detail::make_tensor<c10::TensorImpl>(c10::TensorImpl::VIEW, c10::Storage(tensor.storage()),
                                                             tensor.key_set(), tensor.dtype());
  made.unsafeGetTensorImpl()->set_sizes_and_strides(tensor.sizes(), tensor.strides(), tensor.storage_offset());
  return made;
}

// Bytes from a tensor's first element to behind its last one, whatever lies between.
size_t extent(const at::Tensor& tensor) {
  if (tensor.numel() == 0) return 0;
  int64_t last = 0;
  for (int64_t i = 0; i < tensor.dim(); ++i) last += (tensor.size(i) - 1) * tensor.stride(i);
  return static_cast<size_t>(last + 1) * tensor.itemsize();
}

// Memory of the recording's own that is read in place of an input.
at::Tensor stand_in(const at::Tensor& input) {
  const auto elements = static_cast<int64_t>(extent(input) / input.itemsize());
  at::Tensor flat = at::empty({elements}, input.options());
  flat.unsafeGetTensorImpl()->set_sizes_and_strides(input.sizes(), input.strides(), 0);
  return flat;
}

// One recording: where its inputs lie, and its results.
class Recording {
 public:
  explicit Recording(const Recorder& recorder) : recorder_(recorder) {}
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;
  ~Recording() {
    for (const at::Tensor& result : results_)
      if (result.defined()) owned().drop(result.storage().data());
  }

  // Reads inputs where they lie, but for those that vary.
  void record(const backend::CompiledGraph& program, const void* queue, at::Tensor* inputs, size_t count,
              const std::vector<bool>& varies, std::span<const int64_t> symbols, size_t results) {
    queue_ = queue;
    std::vector<at::Tensor> seen;
    for (size_t i = 0; i < count; ++i) {
      copies_.push_back(varies[i] && inputs[i].defined() ? stand_in(inputs[i]) : at::Tensor());
      places_.push_back(place_of(inputs[i]));
      seen.push_back(copies_[i].defined()  ? same_memory(copies_[i])
                     : inputs[i].defined() ? same_memory(inputs[i])
                                           : at::Tensor());
    }
    results_.resize(results);
    launches_ = recorder_.record([&] { program.run(seen.data(), symbols.data(), results_.data()); });
    for (const at::Tensor& result : results_)
      if (result.defined()) owned().add(result.storage().data());
    for (const at::Tensor& result : results_) uses_.push_back(result.defined() ? result.storage().use_count() : 0);
  }

  // Why the recording can't stand for a call; empty: it can.
  std::string refusal(const at::Tensor* inputs, size_t count, c10::DeviceType device) const {
    for (const at::Tensor& result : results_) {
      if (!result.defined()) continue;
      if (result.device().type() != device) return "a result is not on the GPU";
      for (size_t i = 0; i < count; ++i)
        if (inputs[i].defined() && (result.storage().is_alias_of(inputs[i].storage()) ||
                                    (copies_[i].defined() && result.storage().is_alias_of(copies_[i].storage()))))
          return "a result shares memory with an input";
    }
    return "";
  }

  bool serves(const at::Tensor* inputs, const void* queue) const {
    if (queue != queue_) return false;
    for (size_t i = 0; i < places_.size(); ++i)
      if (copies_[i].defined() ? !inputs[i].defined() : places_[i] != place_of(inputs[i])) return false;
    return true;
  }

  bool in_use() const {
    for (size_t i = 0; i < results_.size(); ++i)
      if (results_[i].defined() && results_[i].storage().use_count() > uses_[i]) return true;
    return false;
  }

  void replay(at::Tensor* inputs, at::Tensor* results) const {
    for (size_t i = 0; i < copies_.size(); ++i) {
      if (copies_[i].defined())
        recorder_.copy(copies_[i].mutable_data_ptr(), inputs[i].const_data_ptr(), extent(inputs[i]));
      inputs[i].reset();
    }
    launches_->replay();
    for (size_t i = 0; i < results_.size(); ++i)
      if (results_[i].defined()) results[i] = same_memory(results_[i]);
  }

  static const void* place_of(const at::Tensor& tensor) { return tensor.defined() ? tensor.const_data_ptr() : nullptr; }

 private:
  const Recorder& recorder_;
  const void* queue_ = nullptr;
  std::vector<at::Tensor> copies_;   // per input: the recording's own memory, or undefined
  std::vector<const void*> places_;  // per input: where it lay
  std::vector<at::Tensor> results_;
  std::vector<size_t> uses_;  // of a result's memory by the recording itself
  std::unique_ptr<Launches> launches_;
};

// What is known of calls with the same sizes.
struct Calls {
  std::vector<int64_t> symbols;
  int runs = 0;
  std::vector<const void*> places;  // of inputs, in the last call
  std::vector<bool> varies;
  std::vector<std::unique_ptr<Recording>> recordings;
};

// Inputs that calls write to behind the graph's back: running statistics of a norm.
std::vector<bool> written_inputs(const ir::Graph& graph) {
  std::vector<bool> written(graph.inputs().size(), false);
  for (const ir::Node& node : graph.nodes()) {
    if (node.kind != ir::NodeKind::Call || ops::traits(node.op).effect != ops::Effect::Write) continue;
    for (const ir::Arg& arg : node.args)
      ir::for_each_value(arg, [&](const ir::ValueRef& value) {
        const ir::Node* owner = ops::memory_owner(value).node;
        const auto found = std::find(graph.inputs().begin(), graph.inputs().end(), owner);
        if (found != graph.inputs().end()) written[static_cast<size_t>(found - graph.inputs().begin())] = true;
      });
  }
  return written;
}

class Replayed final : public backend::CompiledGraph {
 public:
  Replayed(std::unique_ptr<backend::CompiledGraph> program, const ir::Graph& graph, c10::DeviceType device,
           std::shared_ptr<const Recorder> recorder)
      : program_(std::move(program)),
        recorder_(std::move(recorder)),
        device_(device),
        inputs_(graph.inputs().size()),
        outputs_(graph.outputs().size()),
        symbols_(ir::symbol_count(graph)),
        written_(written_inputs(graph)) {}

  void run(at::Tensor* inputs, const int64_t* symbols, at::Tensor* outputs) const override {
    // Two threads in one recording would write to the same memory; the other runs the program as it is.
    const std::unique_lock lock(mutex_, std::try_to_lock);
    if (!lock || refused_ || !replayed(inputs, {symbols, symbols_}, outputs)) program_->run(inputs, symbols, outputs);
  }

 private:
  bool replayed(at::Tensor* inputs, std::span<const int64_t> symbols, at::Tensor* outputs) const {
    Calls* calls = calls_with(symbols);
    if (!calls || !may_read(inputs)) return false;
    observe(calls, inputs);
    const std::optional<const void*> queue = recorder_->queue();
    if (++calls->runs <= kRunsBefore || !queue) return false;
    const Recording* found = nullptr;
    for (const auto& recording : calls->recordings)
      if (!found && recording->serves(inputs, *queue) && !recording->in_use()) found = recording.get();
    if (!found) found = make(calls, inputs, *queue);
    if (!found) return false;
    found->replay(inputs, outputs);
    ++backend::counters().replays;
    return true;
  }

  Calls* calls_with(std::span<const int64_t> symbols) const {
    for (const auto& calls : calls_)
      if (std::equal(symbols.begin(), symbols.end(), calls->symbols.begin())) return calls.get();
    if (calls_.size() == kMostSizes) return refuse("it is called with many sizes"), nullptr;
    calls_.push_back(std::make_unique<Calls>());
    calls_.back()->symbols.assign(symbols.begin(), symbols.end());
    return calls_.back().get();
  }

  bool may_read(const at::Tensor* inputs) const {
    for (size_t i = 0; i < inputs_; ++i)
      if (inputs[i].defined() && inputs[i].device().type() != device_)
        return refuse("an input is not on the GPU, and would be the same in each replay"), false;
    return true;
  }

  static void observe(Calls* calls, const at::Tensor* inputs, size_t count) {
    const bool first = calls->places.empty();
    calls->places.resize(count);
    calls->varies.resize(count);
    for (size_t i = 0; i < count; ++i) {
      const void* place = Recording::place_of(inputs[i]);
      if (!first && place != calls->places[i]) calls->varies[i] = true;
      calls->places[i] = place;
    }
  }
  void observe(Calls* calls, const at::Tensor* inputs) const { observe(calls, inputs, inputs_); }

  const Recording* make(Calls* calls, at::Tensor* inputs, const void* queue) const {
    if (calls->recordings.size() == kMostRecordings) {
      const auto free = std::find_if(calls->recordings.begin(), calls->recordings.end(),
                                     [](const auto& recording) { return !recording->in_use(); });
      if (free == calls->recordings.end() || calls->runs > kMostRemade) return tell_of_plain_runs(), nullptr;
      calls->recordings.erase(free);
    }
    std::vector<bool> varies = calls->varies;
    for (size_t i = 0; i < inputs_; ++i)
      if (varies[i] && inputs[i].defined()) varies[i] = !owned().holds(inputs[i]);
    for (size_t i = 0; i < inputs_; ++i)
      if (varies[i] && written_[i])
        return refuse("an input that is written to comes from another place in each call"), nullptr;
    auto made = std::make_unique<Recording>(*recorder_);
    try {
      made->record(*program_, queue, inputs, inputs_, varies, calls->symbols, outputs_);
    } catch (const std::exception& error) {
      return refuse(error.what()), nullptr;
    }
    if (std::string why = made->refusal(inputs, inputs_, device_); !why.empty()) return refuse(why), nullptr;
    calls->recordings.push_back(std::move(made));
    return calls->recordings.back().get();
  }

  void tell_of_plain_runs() const {
    if (told_) return;
    told_ = true;
    log(Artifact::PerfHints, [] {
      return "a graph's " + std::to_string(kMostRecordings) +
             " recordings do not serve a call, since their results are in use or inputs lie elsewhere: launched call "
             "by call";
    });
  }

  void refuse(const std::string& why) const {
    refused_ = true;
    calls_.clear();
    log(Artifact::PerfHints, "a graph is launched call by call, not as a CUDA graph: " + why);
  }

  static constexpr int kMostRemade = 64;  // calls within which recordings may give way to others

  const std::unique_ptr<backend::CompiledGraph> program_;
  const std::shared_ptr<const Recorder> recorder_;
  const c10::DeviceType device_;
  const size_t inputs_, outputs_, symbols_;
  const std::vector<bool> written_;
  mutable std::mutex mutex_;  // of what follows
  mutable bool refused_ = false, told_ = false;
  mutable std::vector<std::unique_ptr<Calls>> calls_;
};

}  // namespace

std::unique_ptr<backend::CompiledGraph> make_replayed(std::unique_ptr<backend::CompiledGraph> program,
                                                      const ir::Graph& graph, c10::DeviceType device,
                                                      std::shared_ptr<const Recorder> recorder) {
  return std::make_unique<Replayed>(std::move(program), graph, device, std::move(recorder));
}

}  // namespace graphlift::cuda
