// Owns: see arena.h.
#include "backends/reference/arena.h"

#include <ATen/EmptyTensor.h>
#include <c10/core/InferenceMode.h>

#include <algorithm>
#include <numeric>

#include "torch/convert.h"

namespace graphlift::reference {
namespace {

constexpr int64_t kAlignment = 64;

int64_t rounded(int64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

bool meet(const ArenaSpan& a, const ArenaSpan& b) { return a.first <= b.last && b.first <= a.last; }

// A tensor in memory of the block, in a storage of its own: what goes by storages sees no more than the tensor.
at::Tensor tensor_in(const at::Tensor& block, int64_t begin, const ir::TensorType& type) {
  c10::SmallVector<int64_t, 6> sizes, strides;
  for (const ir::Sym& size : type.sizes) sizes.push_back(size.constant());
  for (const ir::Sym& stride : type.strides) strides.push_back(stride.constant());
  const c10::ScalarType dtype = torch_layer::to_torch(type.dtype);
  const size_t bytes = at::detail::computeStorageNbytes(sizes, strides, c10::elementSize(dtype));
  auto* held = new at::Tensor(block);
  c10::DataPtr memory(
      static_cast<char*>(block.mutable_data_ptr()) + begin, held,
      [](void* tensor) { delete static_cast<at::Tensor*>(tensor); }, block.device());
  c10::Storage storage(c10::Storage::use_byte_size_t(), bytes, std::move(memory), nullptr, false);
  at::Tensor made = at::detail::make_tensor<c10::TensorImpl>(
      std::move(storage), c10::DispatchKeySet(c10::DispatchKey::CPU), c10::scalarTypeToTypeMeta(dtype));
  made.unsafeGetTensorImpl()->set_sizes_and_strides(sizes, strides);
  return made;
}

}  // namespace

// The largest first, each where it fits lowest.
ArenaPlaces place_spans(const std::vector<ArenaSpan>& spans) {
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
      if (begin + rounded(spans[i].bytes) <= places.begins[other]) break;
      begin = std::max(begin, places.begins[other] + rounded(spans[other].bytes));
    }
    places.begins[i] = begin;
    places.bytes = std::max(places.bytes, begin + rounded(spans[i].bytes));
    placed.insert(std::upper_bound(placed.begin(), placed.end(), i,
                                   [&](size_t a, size_t b) { return places.begins[a] < places.begins[b]; }),
                  i);
  }
  return places;
}

Arena::Arena(const std::vector<ir::TensorType>& types, const ArenaPlaces& places) {
  const c10::InferenceMode no_inference(false);  // its tensors serve runs outside of it, too
  const at::Tensor block(at::detail::empty_cpu({places.bytes + kAlignment}, c10::ScalarType::Byte));
  const auto start = reinterpret_cast<uintptr_t>(block.const_data_ptr()) % kAlignment;
  const int64_t first = start == 0 ? 0 : kAlignment - static_cast<int64_t>(start);
  for (size_t i = 0; i < types.size(); ++i) tensors_.push_back(tensor_in(block, first + places.begins[i], types[i]));
}

bool Arena::is_free() const {
  return std::all_of(tensors_.begin(), tensors_.end(), [](const at::Tensor& tensor) {
    return tensor.use_count() == 1 && tensor.storage().use_count() == 1;
  });
}

ArenaPool::~ArenaPool() {
  for (auto& kept : kept_) delete kept.load();
}

void ArenaPool::plan(std::vector<ir::TensorType> types, const std::vector<ArenaSpan>& spans) {
  types_ = std::move(types);
  places_ = place_spans(spans);
}

std::unique_ptr<Arena> ArenaPool::take() {
  for (auto& kept : kept_)
    if (kept.load(std::memory_order_relaxed))
      if (Arena* found = kept.exchange(nullptr, std::memory_order_acquire)) return std::unique_ptr<Arena>(found);
  return std::make_unique<Arena>(types_, places_);
}

void ArenaPool::give_back(std::unique_ptr<Arena> arena) {
  if (!arena->is_free()) return;
  for (auto& kept : kept_) {
    Arena* none = nullptr;
    if (kept.compare_exchange_strong(none, arena.get(), std::memory_order_release, std::memory_order_relaxed)) {
      arena.release();
      return;
    }
  }
}

}  // namespace graphlift::reference
