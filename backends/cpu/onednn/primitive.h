// Owns: one computation of oneDNN ready to run: a primitive per number of threads, memory objects that are kept between
// runs, and the scratchpad of the calling thread.
// Must not: know what is computed; take the GIL; allocate in run() after the first runs.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "backends/cpu/onednn/library.h"
#include "backends/cpu/weight_copies.h"

namespace graphlift::cpu::onednn {

enum class Flow : uint8_t { In, Out, Both };

// One address of a run.
struct Argument {
  int index = 0;  // DNNL_ARG_*
  Flow flow = Flow::In;
  // How the memory at the address lies; where the primitive wants it otherwise, it is reordered into the workspace
  // before the run, or out of it behind. Null: it lies as the primitive wants it.
  std::shared_ptr<const dnnl_memory_desc> given = nullptr;
  bool weight = false;  // a run may be given a copy that lies as the primitive wants it
};

// A primitive that was made for one number of threads.
class Variant {
 public:
  Variant(PrimitiveDesc desc, const std::vector<Argument>& arguments, int threads);
  ~Variant();
  Variant(const Variant&) = delete;
  // One address per argument, in the order of `arguments`. Any number of threads at once.
  void run(void* const* addresses) const { run(addresses, false); }
  // The same, where the address of the weight is that of a copy().
  void run_with_copy(void* const* addresses) const { run(addresses, true); }
  WeightForm form() const { return form_; }  // of the weight's copies; 0: it is read as it lies
  WeightCopies::Copy copy(const void* weight) const;
  const_dnnl_memory_desc_t argument_desc(int argument) const;
  std::string implementation() const;
  int reorders() const;  // how many arguments are reordered in each run

  const int threads;
  Variant* next = nullptr;  // in its Primitive's list

 private:
  struct Frame;
  struct Reorder;  // of one argument
  std::unique_ptr<Frame> make_frame() const;
  void add_reorders();
  void run(void* const* addresses, bool with_copy) const;
  // `workspace`: workspace_ bytes of the calling thread.
  void run(void* const* addresses, bool with_copy, char* workspace) const;

  PrimitiveDesc desc_;
  Owned<dnnl_primitive_t> primitive_;
  const std::vector<Argument> arguments_;
  std::vector<Reorder> reorders_;
  WeightForm form_ = 0;
  size_t scratchpad_ = 0;  // bytes, at the start of the workspace; then a buffer per reorder; then what reorders need
  size_t workspace_ = 0;
  // A frame that no run uses now, or null. A second run at the same time makes its own.
  mutable std::atomic<Frame*> spare_{nullptr};
};

class Primitive {
 public:
  // `describe` is called once per number of threads; null: it can't be made (only the first time).
  using Describe = std::function<PrimitiveDesc()>;
  // Null when `describe` gives none. `arguments`: in the order of run()'s addresses.
  static std::unique_ptr<const Primitive> make(Describe describe, std::vector<Argument> arguments);
  ~Primitive();

  // For as many threads as torch has at this call.
  const Variant& variant() const;
  void run(void* const* addresses) const { variant().run(addresses); }

 private:
  Primitive(Describe describe, std::vector<Argument> arguments);
  Variant* add(int threads) const;

  const Describe describe_;
  const std::vector<Argument> arguments_;
  mutable std::mutex adding_;
  mutable std::atomic<Variant*> variants_{nullptr};  // grows only
};

// Attributes with which a primitive takes its scratchpad from the caller: what every primitive here needs.
Attributes new_attributes();
// Null where only a plain reference loop does it: those stand last among the implementations. Asking for the next one
// behind it calls a null pointer in oneDNN 3.2 (gradients of depthwise convolutions of sequences).
PrimitiveDesc unless_reference(PrimitiveDesc desc);
// A copy of data from one form to another; null where the library has no fast one.
PrimitiveDesc describe_reorder(const_dnnl_memory_desc_t from, const_dnnl_memory_desc_t to);
// Empty when a description could not be made.
MemoryDesc strided_desc(const std::vector<int64_t>& sizes, const std::vector<int64_t>& strides, dnnl_data_type_t type);
MemoryDesc any_layout_desc(const std::vector<int64_t>& sizes, dnnl_data_type_t type);

}  // namespace graphlift::cpu::onednn
