// Owns: see replay.h.
#include "backends/cuda/replay.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <mutex>
#include <optional>

#include "backends/cuda/recording.h"
#include "base/log.h"
#include "ops/traits.h"

namespace graphlift::cuda {
namespace {

constexpr int kRunsBefore = 2;         // as it is: libraries make their workspaces, and inputs show which of them move
constexpr size_t kMostRecordings = 4;  // of one set of sizes
constexpr size_t kMostSizes = 8;

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
           std::shared_ptr<const Recorder> recorder, size_t saved_from)
      : program_(std::move(program)),
        recorder_(std::move(recorder)),
        device_(device),
        inputs_(graph.inputs().size()),
        outputs_(graph.outputs().size()),
        symbols_(ir::symbol_count(graph)),
        saved_from_(saved_from),
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
    for (const auto& recording : calls->recordings)
      if (recording->matches(inputs, *queue) && replayed(*recording, inputs, outputs)) return true;
    std::unique_ptr<Recording> made = make_room(calls) ? make(calls, inputs, *queue) : nullptr;
    if (!made) return false;
    calls->recordings.push_back(std::move(made));
    return replayed(*calls->recordings.back(), inputs, outputs);
  }

  // False: somebody needs what it writes over, or another thread is in its memory.
  static bool replayed(const Recording& recording, at::Tensor* inputs, at::Tensor* outputs) {
    const std::unique_lock lock(recording.memory().mutex(), std::try_to_lock);
    if (!lock || !recording.is_free(inputs)) return false;
    recording.replay(inputs, outputs);
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

  // False: there are many recordings, and no call may take one's place.
  bool make_room(Calls* calls) const {
    auto& recordings = calls->recordings;
    if (recordings.size() < kMostRecordings) return true;
    const auto idle =
        std::find_if(recordings.begin(), recordings.end(), [](const auto& one) { return !one->in_use(); });
    if (idle == recordings.end() || calls->runs > kMostRemade) return tell_of_plain_runs(), false;
    recordings.erase(idle);
    return true;
  }

  std::unique_ptr<Recording> make(Calls* calls, at::Tensor* inputs, const void* queue) const {
    std::vector<bool> varies = calls->varies;
    for (size_t i = 0; i < inputs_; ++i)
      if (varies[i] && inputs[i].defined()) varies[i] = !is_recorded_result(inputs[i]);
    for (size_t i = 0; i < inputs_; ++i)
      if (varies[i] && written_[i])
        return refuse("an input that is written to comes from another place in each call"), nullptr;
    const std::shared_ptr<InnerMemory> memory = memory_for(inputs, queue);
    const std::unique_lock lock(memory->mutex(), std::try_to_lock);
    if (!lock || !memory->can_grow(inputs, inputs_, memory->in_use(inputs, inputs_))) return nullptr;
    auto made = std::make_unique<Recording>(*recorder_, memory, saved_from_);
    std::string why;
    try {
      made->record(*program_, inputs, inputs_, varies, calls->symbols, outputs_);
      why = made->refusal(inputs, inputs_, device_);
    } catch (const std::exception& error) {
      why = error.what();
    }
    if (why.empty()) return made;
    refuse(why);
    return nullptr;
  }

  // That of the recording that made the inputs, if it can be recorded in; or one of this program's recordings.
  std::shared_ptr<InnerMemory> memory_for(const at::Tensor* inputs, const void* queue) const {
    std::vector<std::shared_ptr<InnerMemory>> known = memory_;
    for (size_t i = 0; i < inputs_; ++i)
      if (const auto result = SavedResult::of(inputs[i]))
        if (auto memory = result->in()) {
          known.insert(known.begin(), std::move(memory));
          break;
        }
    for (const auto& memory : known) {
      if (memory->queue() != queue) continue;
      const std::unique_lock lock(memory->mutex(), std::try_to_lock);
      if (lock && memory->can_grow(inputs, inputs_, memory->in_use(inputs, inputs_))) return memory;
    }
    return memory_.emplace_back(std::make_shared<InnerMemory>(queue));
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
  const size_t inputs_, outputs_, symbols_, saved_from_;
  const std::vector<bool> written_;
  mutable std::mutex mutex_;  // of what follows
  mutable bool refused_ = false, told_ = false;
  mutable std::vector<std::unique_ptr<Calls>> calls_;
  mutable std::vector<std::shared_ptr<InnerMemory>> memory_;  // of its own recordings
};

}  // namespace

std::unique_ptr<backend::CompiledGraph> make_replayed(std::unique_ptr<backend::CompiledGraph> program,
                                                      const ir::Graph& graph, c10::DeviceType device,
                                                      std::shared_ptr<const Recorder> recorder, size_t saved_from) {
  return std::make_unique<Replayed>(std::move(program), graph, device, std::move(recorder), saved_from);
}

}  // namespace graphlift::cuda
