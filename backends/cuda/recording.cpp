// Owns: see recording.h.
#include "backends/cuda/recording.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <map>
#include <unordered_map>

namespace graphlift::cuda {
namespace {

class RecordedPlaces {
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

RecordedPlaces& recorded_places() {
  static auto* places = new RecordedPlaces;
  return *places;
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

}  // namespace

bool is_recorded_result(const at::Tensor& tensor) { return recorded_places().holds(tensor); }

Recording::~Recording() {
  for (const at::Tensor& result : results_)
    if (result.defined()) recorded_places().drop(result.storage().data());
  for (const auto& result : saved_) result->retire();
}

bool Recording::in_use() const {
  for (size_t i = 0; i < results_.size(); ++i)
    if (uses_[i] > 0 && results_[i].storage().use_count() > uses_[i]) return true;
  return std::any_of(saved_.begin(), saved_.end(), [](const auto& result) { return result->in_use(); });
}

std::vector<at::Tensor> Recording::take_inputs(const at::Tensor* inputs, size_t count,
                                               const std::vector<bool>& varies) {
  const InnerMemory::Results in_use = memory_->in_use(inputs, count);
  for (const SavedResult* result : in_use) spared_.push_back(result->number());
  std::vector<at::Tensor> seen = memory_->give_up(inputs, count, in_use);
  for (size_t i = 0; i < count; ++i) {
    copies_.push_back(varies[i] && inputs[i].defined() ? stand_in(inputs[i]) : at::Tensor());
    places_.push_back(place_of(inputs[i]));
    if (copies_[i].defined()) seen[i] = same_memory(copies_[i]);
  }
  return seen;
}

void Recording::record(const backend::CompiledGraph& program, const at::Tensor* inputs, size_t count,
                       const std::vector<bool>& varies, std::span<const int64_t> symbols, size_t results) {
  std::vector<at::Tensor> seen = take_inputs(inputs, count, varies), made(results);
  const std::shared_ptr<const Launches> beside = memory_->launches();
  launches_ = recorder_.record([&] { program.run(seen.data(), symbols.data(), made.data()); }, beside.get());
  memory_->add(launches_);
  take_results(std::move(made));
}

// Memory that a visible result lies in is the caller's, also where a saved one lies in it.
void Recording::take_results(std::vector<at::Tensor> results) {
  struct Kept {
    c10::Storage storage;
    std::vector<size_t> results;
    bool visible = false;
  };
  std::map<const c10::StorageImpl*, Kept> memory;
  for (size_t i = 0; i < results.size(); ++i) {
    if (!results[i].defined()) continue;
    recorded_places().add(results[i].storage().data());
    Kept& kept = memory[results[i].storage().unsafeGetStorageImpl()];
    kept.storage = results[i].storage();
    kept.results.push_back(i);
    kept.visible |= i < saved_from_;
  }
  results_ = std::move(results);
  uses_.assign(results_.size(), 0);
  for (auto& [storage, kept] : memory) {
    if (!kept.visible) {
      saved_.push_back(std::make_shared<SavedResult>(std::move(kept.storage), launches_, memory_));
      for (const size_t i : kept.results) results_[i] = same_memory(results_[i], saved_.back()->face());
      memory_->add(saved_.back(), kept.results.size());
      continue;
    }
    kept.storage = c10::Storage();
    for (const size_t i : kept.results) uses_[i] = results_[i].storage().use_count();
  }
}

std::string Recording::refusal(const at::Tensor* inputs, size_t count, c10::DeviceType device) const {
  for (const at::Tensor& result : results_) {
    if (!result.defined()) continue;
    if (result.device().type() != device) return "a result is not on the GPU";
    const void* memory = result.storage().data();
    for (size_t i = 0; memory && i < count; ++i)
      if (inputs[i].defined() &&
          (memory == inputs[i].storage().data() || (copies_[i].defined() && memory == copies_[i].storage().data())))
        return "a result shares memory with an input";
  }
  return "";
}

bool Recording::matches(const at::Tensor* inputs, const void* queue) const {
  if (queue != memory_->queue()) return false;
  for (size_t i = 0; i < places_.size(); ++i)
    if (copies_[i].defined() ? !inputs[i].defined() : places_[i] != place_of(inputs[i])) return false;
  return true;
}

bool Recording::is_free(const at::Tensor* inputs) const {
  if (in_use()) return false;
  for (const SavedResult* result : memory_->in_use(inputs, places_.size()))
    if (std::find(spared_.begin(), spared_.end(), result->number()) == spared_.end()) return false;
  return true;
}

void Recording::replay(at::Tensor* inputs, at::Tensor* results) const {
  for (size_t i = 0; i < copies_.size(); ++i) {
    if (copies_[i].defined())
      recorder_.copy(copies_[i].mutable_data_ptr(), inputs[i].const_data_ptr(), extent(inputs[i]));
    inputs[i].reset();
  }
  launches_->replay();
  for (size_t i = 0; i < results_.size(); ++i)
    if (results_[i].defined()) results[i] = same_memory(results_[i]);
}

}  // namespace graphlift::cuda
