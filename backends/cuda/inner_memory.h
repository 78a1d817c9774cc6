// Owns: memory that several recordings use one after another: what launches need in between, and results that a
// forward leaves for its backward. Results that leave a program lie elsewhere.
// Must not: know what is recorded.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/util/SmallVector.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

namespace graphlift::cuda {

class Launches;
class InnerMemory;

// One result that a forward leaves for its backward. Callers get tensors of its face, a storage that does not own the
// memory. The owner keeps the allocator from giving it to another recording; once a recording was made that uses up the
// result, there is none, and the memory is free for that recording from where it has read the result.
class SavedResult {
 public:
  // `owner`: as the recording got it. `launches`: what the memory lives as long as.
  SavedResult(c10::Storage owner, std::shared_ptr<const Launches> launches, std::weak_ptr<InnerMemory> in);
  SavedResult(const SavedResult&) = delete;
  SavedResult& operator=(const SavedResult&) = delete;

  // Whose face a tensor lies in; null: none.
  static std::shared_ptr<SavedResult> of(const at::Tensor& tensor);

  uint64_t number() const { return number_; }  // no other one's in this process
  const c10::Storage& face() const { return face_; }
  const c10::Storage& owner() const { return owner_; }
  void drop_owner() { owner_ = c10::Storage(); }
  bool owned() const { return static_cast<bool>(owner_); }
  std::shared_ptr<InnerMemory> in() const { return in_.lock(); }
  // Whether anything but its recording refers to it.
  bool in_use() const { return face_.use_count() > own_uses_; }
  // The recording is about to let go of its tensors. Needs no mutex.
  void retire() { retired_ = true, own_uses_ = 1; }

 private:
  friend class InnerMemory;
  const uint64_t number_;
  c10::Storage face_, owner_;
  const std::weak_ptr<InnerMemory> in_;
  std::atomic<size_t> own_uses_ = 1;  // of the face: by this, and by the recording's tensors
  std::atomic<bool> retired_ = false;
  size_t given_ = 0;  // uses of the face by the inputs of the call at hand
};

// What the recordings of one forward, and of the backwards that read its results, share. They are recorded and replayed
// on one queue, so one after another.
class InnerMemory {
 public:
  using Results = c10::SmallVector<const SavedResult*, 8>;

  explicit InnerMemory(const void* queue);

  // Held by whoever calls the rest, until its launches are enqueued. Recording waits for the GIL meanwhile, so nobody
  // waits for the mutex.
  std::mutex& mutex() { return mutex_; }
  const void* queue() const { return queue_; }

  // Results that something besides these inputs refers to: launches may not write there.
  Results in_use(const at::Tensor* inputs, size_t count);
  // Whether another recording may be made here: the allocator knows of all that is in use or read.
  bool can_grow(const at::Tensor* inputs, size_t count, const Results& in_use) const;
  // The inputs as a recording is to see them: results that nothing else refers to own their memory, and are freed
  // by the recording as it lets go of them. Memory of results that nothing refers to is free from here on.
  std::vector<at::Tensor> give_up(const at::Tensor* inputs, size_t count, const Results& in_use);

  void add(std::shared_ptr<SavedResult> result, size_t tensors);
  void add(const std::shared_ptr<const Launches>& launches) { launches_.push_back(launches); }
  // Of a recording whose memory others are to use; null: there is none any more.
  std::shared_ptr<const Launches> launches() const;

 private:
  // In whose face a tensor lies; null: in none, or another memory's.
  SavedResult* result_of(const at::Tensor& tensor) const;

  const uint64_t number_;  // no other one's in this process
  const void* const queue_;
  std::mutex mutex_;
  std::vector<std::shared_ptr<SavedResult>> results_;
  std::vector<std::weak_ptr<const Launches>> launches_;
};

// The same memory as another tensor, with a history and a version of its own; in another storage of it if one is given.
at::Tensor same_memory(const at::Tensor& tensor);
at::Tensor same_memory(const at::Tensor& tensor, const c10::Storage& storage);

}  // namespace graphlift::cuda
