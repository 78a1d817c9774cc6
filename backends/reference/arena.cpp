// Owns: see arena.h.
#include "backends/reference/arena.h"

#include <ATen/EmptyTensor.h>
#include <c10/core/Allocator.h>
#include <c10/core/DeviceGuard.h>
#include <c10/core/InferenceMode.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <numeric>

#include "torch/convert.h"

namespace graphlift::reference {
namespace {

// Of a cache line; of what an allocator of a GPU gives, which products look at.
constexpr int64_t kCpuAlignment = 64, kDeviceAlignment = 512;

int64_t alignment_on(const ir::Device& device) { return device.is_cpu() ? kCpuAlignment : kDeviceAlignment; }

int64_t rounded(int64_t bytes, int64_t alignment) { return (bytes + alignment - 1) / alignment * alignment; }

bool meet(const ArenaSpan& a, const ArenaSpan& b) { return a.first <= b.last && b.first <= a.last; }

// A tensor without memory yet, with a storage of its own: what goes by storages sees no more than the tensor.
at::Tensor tensor_of(const ir::TensorType& type, c10::Device device) {
  c10::SmallVector<int64_t, 6> sizes, strides;
  for (const ir::Sym& size : type.sizes) sizes.push_back(size.constant());
  for (const ir::Sym& stride : type.strides) strides.push_back(stride.constant());
  const c10::ScalarType dtype = torch_layer::to_torch(type.dtype);
  const size_t bytes = at::detail::computeStorageNbytes(sizes, strides, c10::elementSize(dtype));
  c10::Storage storage(c10::Storage::use_byte_size_t(), bytes, c10::DataPtr(nullptr, device), nullptr, false);
  const c10::DispatchKeySet keys(c10::computeDispatchKey(std::nullopt, std::nullopt, device));
  at::Tensor made =
      at::detail::make_tensor<c10::TensorImpl>(std::move(storage), keys, c10::scalarTypeToTypeMeta(dtype));
  made.unsafeGetTensorImpl()->set_sizes_and_strides(sizes, strides);
  return made;
}

void place(const at::Tensor& tensor, c10::DataPtr memory) {
  tensor.unsafeGetTensorImpl()->unsafe_storage().unsafeGetStorageImpl()->set_data_ptr_noswap(std::move(memory));
}

}  // namespace

// The largest first, each where it fits lowest.
ArenaPlaces place_spans(const std::vector<ArenaSpan>& spans, int64_t alignment) {
  std::vector<size_t> order(spans.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return spans[a].bytes > spans[b].bytes; });
  ArenaPlaces places;
  places.begins.assign(spans.size(), 0);
  std::vector<size_t> placed;  // by where they begin
  for (const size_t i : order) {
    int64_t begin = 0;
    for (const size_t other : placed) {
      if (!meet(spans[i], spans[other])) continue;
      if (begin + rounded(spans[i].bytes, alignment) <= places.begins[other]) break;
      begin = std::max(begin, places.begins[other] + rounded(spans[other].bytes, alignment));
    }
    places.begins[i] = begin;
    places.bytes = std::max(places.bytes, begin + rounded(spans[i].bytes, alignment));
    placed.insert(std::upper_bound(placed.begin(), placed.end(), i,
                                   [&](size_t a, size_t b) { return places.begins[a] < places.begins[b]; }),
                  i);
  }
  return places;
}

// Memory that lives as long as one of the tensors that lie there.
struct Arena::Block {
  c10::DataPtr memory;
  std::atomic<size_t> tensors;

  static void let_go(void* block) {
    auto* const own = static_cast<Block*>(block);
    if (--own->tensors == 0) delete own;
  }
};

Arena::Arena(const std::vector<ir::TensorType>& types, const ArenaPlaces& places)
    : begins_(places.begins),
      bytes_(static_cast<size_t>(places.bytes)),
      device_(torch_layer::to_torch(types.front().device)) {
  const c10::InferenceMode no_inference(false);  // its tensors serve runs outside of it, too
  for (const ir::TensorType& type : types) tensors_.push_back(tensor_of(type, device_));
}

bool Arena::holds(const void* place) const {
  const auto* at = static_cast<const char*>(place);
  return begin_ <= at && at < begin_ + bytes_;
}

void Arena::begin_run() {
  if (begin_) return;
  const c10::DeviceGuard guard(device_);
  auto* const block = new Block{c10::GetAllocator(device_.type())->allocate(bytes_), tensors_.size()};
  begin_ = static_cast<char*>(block->memory.mutable_get());
  for (size_t i = 0; i < tensors_.size(); ++i)
    place(tensors_[i], c10::DataPtr(begin_ + begins_[i], block, &Block::let_go, device_));
}

bool Arena::end_run() {
  const bool free = std::all_of(tensors_.begin(), tensors_.end(), [](const at::Tensor& tensor) {
    return tensor.use_count() == 1 && tensor.storage().use_count() == 1;
  });
  if (!free || device_.is_cpu()) return free;
  for (const at::Tensor& tensor : tensors_) place(tensor, c10::DataPtr(nullptr, device_));
  begin_ = nullptr;
  return true;
}

ArenaPool::~ArenaPool() {
  for (auto& kept : kept_) delete kept.load();
}

void ArenaPool::plan(std::vector<ir::TensorType> types, const std::vector<ArenaSpan>& spans) {
  if (types.empty()) return;
  places_ = place_spans(spans, alignment_on(types.front().device));
  types_ = std::move(types);
}

std::unique_ptr<Arena> ArenaPool::take() {
  std::unique_ptr<Arena> arena;
  for (auto& kept : kept_)
    if (!arena && kept.load(std::memory_order_relaxed)) arena.reset(kept.exchange(nullptr, std::memory_order_acquire));
  if (!arena) arena = std::make_unique<Arena>(types_, places_);
  arena->begin_run();
  return arena;
}

void ArenaPool::give_back(std::unique_ptr<Arena> arena) {
  if (!arena->end_run()) return;
  for (auto& kept : kept_) {
    Arena* none = nullptr;
    if (kept.compare_exchange_strong(none, arena.get(), std::memory_order_release, std::memory_order_relaxed)) {
      arena.release();
      return;
    }
  }
}

}  // namespace graphlift::reference
