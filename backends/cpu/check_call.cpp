// Owns: see check_call.h.
#include "backends/cpu/check_call.h"

#include <ATen/ATen.h>

#include <atomic>

#include "backends/cpu/thread_team.h"
#include "backends/cpu/widest.h"

namespace graphlift::cpu {
namespace {

using codegen::PlaceCheck;
using Words = PlaceCheck::Words;

struct Bounds {
  int64_t least, size;
  std::optional<int64_t> ignored;

  bool holds(int64_t place) const { return (place >= least && place < size) || place == ignored; }
};

// Whether places hold: without a branch per place while nothing is ignored.
template <class T>
GL_WIDEST bool in_range(const T* places, int64_t count, int64_t least, uint64_t range) {
  uint64_t wrong = 0;
  for (int64_t i = 0; i < count; ++i)
    wrong |= static_cast<uint64_t>(static_cast<int64_t>(places[i]) - least) >= range ? 1 : 0;
  return wrong == 0;
}

template <class T>
bool all_hold(const T* places, int64_t count, int64_t step, const Bounds& bounds) {
  if (bounds.ignored) {
    for (int64_t i = 0; i < count; ++i)
      if (!bounds.holds(places[i * step])) return false;
    return true;
  }
  const uint64_t range = static_cast<uint64_t>(bounds.size - bounds.least);
  if (step == 1) return in_range(places, count, bounds.least, range);
  bool wrong = false;
  for (int64_t i = 0; i < count; ++i)
    wrong |= static_cast<uint64_t>(static_cast<int64_t>(places[i * step]) - bounds.least) >= range;
  return !wrong;
}

[[noreturn]] void complain(const PlaceCheck& check, int64_t place, int64_t size) {
  switch (check.words) {
    case Words::Select:
      TORCH_CHECK_INDEX(false, "index out of range in self");
    case Words::Gather:
      TORCH_CHECK(false, "index ", place, " is out of bounds for dimension ", check.dim, " with size ", size);
    case Words::Index:
      TORCH_CHECK_INDEX(false, "index ", place, " is out of bounds for dimension ", check.dim, " with size ", size);
    case Words::Target:
      TORCH_CHECK_INDEX(false, "Target ", place, " is out of bounds.");
  }
  TORCH_INTERNAL_ASSERT(false);
}

// Many places: each thread looks at a part.
template <class T>
bool all_hold_in_parts(const T* places, int64_t count, int64_t step, const Bounds& bounds) {
  constexpr int64_t kPart = 65536;
  struct Job {
    const T* places;
    int64_t step;
    const Bounds& bounds;
    std::atomic<bool> wrong = false;
    static void run(void* context, int64_t begin, int64_t end) {
      Job& job = *static_cast<Job*>(context);
      if (!all_hold(job.places + begin * job.step, end - begin, job.step, job.bounds)) job.wrong = true;
    }
  };
  Job job{places, step, bounds};
  share_units(count, kPart, Job::run, &job);
  return !job.wrong;
}

class CheckCall final : public reference::NativeCall {
 public:
  explicit CheckCall(const codegen::CheckOperation& operation) : what_(operation.what), type_(operation.type) {}

  void run(const at::Tensor* const* inputs, at::Tensor*, std::span<const int64_t> symbols) const override {
    const int64_t size = what_.size.eval(symbols);
    const Bounds bounds{what_.wraps ? -size : 0, size, what_.ignored};
    if (type_.dtype == ir::DType::int32)
      check(inputs[0]->const_data_ptr<int32_t>(), bounds, symbols);
    else
      check(inputs[0]->const_data_ptr<int64_t>(), bounds, symbols);
  }

 private:
  // Row by row of the last dim; dims that go on without a gap count as one.
  template <class T>
  void check(const T* data, const Bounds& bounds, std::span<const int64_t> symbols) const {
    c10::SmallVector<int64_t, 6> sizes, strides;
    for (size_t i = 0; i < type_.sizes.size(); ++i) {
      const int64_t size = type_.sizes[i].eval(symbols), stride = type_.strides[i].eval(symbols);
      if (size == 0) return;
      if (size == 1) continue;
      if (!sizes.empty() && strides.back() == size * stride) {
        sizes.back() *= size;
        strides.back() = stride;
      } else {
        sizes.push_back(size);
        strides.push_back(stride);
      }
    }
    if (sizes.empty()) sizes.push_back(1), strides.push_back(1);
    walk(data + type_.offset.eval(symbols), bounds, sizes, strides);
  }

  template <class T>
  void walk(const T* data, const Bounds& bounds, c10::IntArrayRef sizes, c10::IntArrayRef strides) const {
    if (sizes.size() > 1) {
      for (int64_t i = 0; i < sizes[0]; ++i) walk(data + i * strides[0], bounds, sizes.slice(1), strides.slice(1));
      return;
    }
    if (all_hold_in_parts(data, sizes[0], strides[0], bounds)) return;
    for (int64_t i = 0; i < sizes[0]; ++i)
      if (!bounds.holds(data[i * strides[0]])) complain(what_, data[i * strides[0]], bounds.size);
  }

  PlaceCheck what_;
  ir::TensorType type_;
};

}  // namespace

std::unique_ptr<reference::NativeCall> make_check_call(const codegen::CheckOperation& operation) {
  return std::make_unique<CheckCall>(operation);
}

}  // namespace graphlift::cpu
