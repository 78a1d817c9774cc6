// Owns: one recording of a program: where its inputs lie, its results, and whether it may stand for a call.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "backends/cuda/inner_memory.h"
#include "backends/cuda/replay.h"

namespace graphlift::cuda {

// Whether memory is some recording's result. An input that lies there comes back in later calls.
bool is_recorded_result(const at::Tensor& tensor);

class Recording {
 public:
  // Results from `saved_from` on are read by the backward alone.
  Recording(const Recorder& recorder, std::shared_ptr<InnerMemory> memory, size_t saved_from)
      : recorder_(recorder), memory_(std::move(memory)), saved_from_(saved_from) {}
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;
  ~Recording();

  // Reads inputs where they lie, but for those that vary. The memory's mutex is held, here and in what follows.
  void record(const backend::CompiledGraph& program, const at::Tensor* inputs, size_t count,
              const std::vector<bool>& varies, std::span<const int64_t> symbols, size_t results);
  // Why the recording can't stand for a call; empty: it can.
  std::string refusal(const at::Tensor* inputs, size_t count, c10::DeviceType device) const;

  // Whether it is a recording of calls with these inputs.
  bool matches(const at::Tensor* inputs, const void* queue) const;
  // Whether anybody refers to a result.
  bool in_use() const;
  // Whether nobody needs what it writes over.
  bool is_free(const at::Tensor* inputs) const;
  void replay(at::Tensor* inputs, at::Tensor* results) const;

  InnerMemory& memory() const { return *memory_; }
  static const void* place_of(const at::Tensor& tensor) { return tensor.defined() ? tensor.const_data_ptr() : nullptr; }

 private:
  void take_results(std::vector<at::Tensor> results);
  std::vector<at::Tensor> take_inputs(const at::Tensor* inputs, size_t count, const std::vector<bool>& varies);

  const Recorder& recorder_;
  const std::shared_ptr<InnerMemory> memory_;
  const size_t saved_from_;
  std::vector<uint64_t> spared_;     // numbers of results in the inner memory that were in use when it was recorded
  std::vector<at::Tensor> copies_;   // per input: the recording's own memory, or undefined
  std::vector<const void*> places_;  // per input: where it lay
  std::vector<at::Tensor> results_;  // saved ones lie in their faces
  std::vector<size_t> uses_;         // of a result's memory by the recording itself; 0: a saved one
  std::vector<std::shared_ptr<SavedResult>> saved_;
  std::shared_ptr<const Launches> launches_;
};

}  // namespace graphlift::cuda
