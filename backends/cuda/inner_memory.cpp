// Owns: see inner_memory.h.
#include "backends/cuda/inner_memory.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <atomic>

namespace graphlift::cuda {
namespace {

// What a face's storage knows: whose it is, and what its memory lives as long as.
struct FaceContext {
  std::weak_ptr<SavedResult> result;
  std::shared_ptr<const Launches> launches;
  uint64_t memory = 0;           // the number of the inner memory that it lies in
  SavedResult* known = nullptr;  // alive while that memory is: it keeps results whose face is referred to
};

void delete_face(void* context) { delete static_cast<FaceContext*>(context); }

FaceContext* context_of(const c10::Storage& storage) {
  const c10::DataPtr& memory = storage.data_ptr();
  return memory.get_deleter() == &delete_face ? static_cast<FaceContext*>(memory.get_context()) : nullptr;
}

uint64_t next_number() {
  static std::atomic<uint64_t> last{0};
  return ++last;
}

// Whether the caller of a run has let go of a tensor but for the input.
bool only_ours(const at::Tensor& input) { return input.use_count() == 1; }

}  // namespace

SavedResult::SavedResult(c10::Storage owner, std::shared_ptr<const Launches> launches, std::weak_ptr<InnerMemory> in)
    : number_(next_number()), owner_(std::move(owner)), in_(std::move(in)) {
  c10::DataPtr memory(owner_.mutable_data(), new FaceContext{{}, std::move(launches)}, &delete_face, owner_.device());
  face_ = c10::Storage(c10::Storage::use_byte_size_t(), owner_.nbytes(), std::move(memory), nullptr, false);
}

std::shared_ptr<SavedResult> SavedResult::of(const at::Tensor& tensor) {
  if (!tensor.defined() || !tensor.has_storage()) return nullptr;
  const FaceContext* context = context_of(tensor.storage());
  return context ? context->result.lock() : nullptr;
}

InnerMemory::InnerMemory(const void* queue) : number_(next_number()), queue_(queue) {}

SavedResult* InnerMemory::result_of(const at::Tensor& tensor) const {
  if (!tensor.defined() || !tensor.has_storage()) return nullptr;
  const FaceContext* context = context_of(tensor.storage());
  return context && context->memory == number_ ? context->known : nullptr;
}

InnerMemory::Results InnerMemory::in_use(const at::Tensor* inputs, size_t count) {
  for (size_t i = 0; i < count; ++i)
    if (SavedResult* const result = result_of(inputs[i]); result && only_ours(inputs[i])) ++result->given_;
  Results found;
  for (const auto& result : results_)
    if (result->face_.use_count() > result->own_uses_ + result->given_) found.push_back(result.get());
  for (size_t i = 0; i < count; ++i)
    if (SavedResult* const result = result_of(inputs[i])) result->given_ = 0;
  std::erase_if(results_, [](const auto& result) { return result->retired_ && !result->in_use(); });
  return found;
}

bool InnerMemory::can_grow(const at::Tensor* inputs, size_t count, const Results& in_use) const {
  for (const SavedResult* result : in_use)
    if (!result->owned()) return false;
  for (size_t i = 0; i < count; ++i)
    if (const SavedResult* const result = result_of(inputs[i]); result && !result->owned()) return false;
  return true;
}

std::vector<at::Tensor> InnerMemory::give_up(const at::Tensor* inputs, size_t count, const Results& in_use) {
  const auto kept = [&](const SavedResult* result) {
    return std::find(in_use.begin(), in_use.end(), result) != in_use.end();
  };
  std::vector<at::Tensor> seen(count);
  for (size_t i = 0; i < count; ++i) {
    if (!inputs[i].defined()) continue;
    const SavedResult* const result = result_of(inputs[i]);
    const bool used_up = result && !kept(result);
    seen[i] = used_up ? same_memory(inputs[i], result->owner()) : same_memory(inputs[i]);
  }
  for (const auto& result : results_)
    if (!kept(result.get())) result->drop_owner();
  return seen;
}

void InnerMemory::add(std::shared_ptr<SavedResult> result, size_t tensors) {
  FaceContext* const context = context_of(result->face_);
  context->result = result, context->memory = number_, context->known = result.get();
  result->own_uses_ = 1 + tensors;
  results_.push_back(std::move(result));
}

std::shared_ptr<const Launches> InnerMemory::launches() const {
  for (const auto& launches : launches_)
    if (auto alive = launches.lock()) return alive;
  return nullptr;
}

at::Tensor same_memory(const at::Tensor& tensor) { return same_memory(tensor, tensor.storage()); }

at::Tensor same_memory(const at::Tensor& tensor, const c10::Storage& storage) {
  at::Tensor made = at::detail::make_tensor<c10::TensorImpl>(c10::TensorImpl::VIEW, c10::Storage(storage),
                                                             tensor.key_set(), tensor.dtype());
  made.unsafeGetTensorImpl()->set_sizes_and_strides(tensor.sizes(), tensor.strides(), tensor.storage_offset());
  return made;
}

}  // namespace graphlift::cuda
