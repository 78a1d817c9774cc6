// Owns: stand-in tensors: a TensorImpl without data that claims a real device, and the value in the graph behind it.
// A FakeStorage is the unit of aliasing: it has one base slot; views are slots that hang below it by the view operation
// that made them, and are brought up to date by playing that operation again once the base was written. Must not:
// record anything or call operators.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/StorageImpl.h>
#include <c10/core/TensorImpl.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "ir/graph.h"
#include "ir/sym.h"

namespace graphlift::torch_layer {

// A view operation with its arguments; args[0] stands for the tensor that is viewed.
struct ViewStep {
  ir::Op op;
  ir::ArgList args;
};

// What a stand-in's content is at this moment of the recording.
struct Slot {
  ir::TensorType type;  // as eager has it; `value` has the same type
  ir::ValueRef value;   // up to date while `generation` is the storage's
  uint64_t generation = 0;
  std::shared_ptr<Slot> parent;  // null: the base
  ViewStep step;                 // how it is made from the parent
};

class FakeStorage final : public c10::StorageImpl {
 public:
  FakeStorage(uint64_t recording, std::shared_ptr<Slot> base, c10::Device device, c10::SymInt bytes);

  static uint64_t last_born();
  const uint64_t born;  // later ones have higher numbers
  uint64_t recording;   // serial number of the tracer that made it: stand-ins never outlive it usefully
  uint64_t generation = 0;
  int primal = -1;  // of the input whose memory this is
  std::shared_ptr<Slot> base;
  std::vector<std::weak_ptr<Slot>> views;  // every slot below the base
};

// In the message of the error that reading a stand-in's data raises.
inline constexpr const char* kNoData = "graphlift: a tensor has no data while the program is captured";

class FakeImpl final : public c10::TensorImpl {
 public:
  // A tensor on its own memory.
  FakeImpl(c10::intrusive_ptr<FakeStorage> storage, c10::DispatchKeySet keys, std::shared_ptr<Slot> slot,
           ir::ShapeEnv& env);
  // A view; `keys` are those of the tensor that is viewed.
  FakeImpl(ImplType view, c10::intrusive_ptr<FakeStorage> storage, c10::DispatchKeySet keys, std::shared_ptr<Slot> slot,
           ir::ShapeEnv& env);

  const std::shared_ptr<Slot>& slot() const { return slot_; }
  // In-place changes of metadata: t_(), squeeze_(), resize_(), x.data = y.
  void set_slot(std::shared_ptr<Slot> slot);

  c10::Device device_custom() const override { return device_; }
  // Asked for numbers by code of torch's that knows no symbolic sizes: they are fixed to their hints.
  int64_t size_custom(int64_t d) const override;
  c10::IntArrayRef sizes_custom() const override { return numbers(slot_->type.sizes, &sizes_); }
  c10::IntArrayRef strides_custom() const override { return numbers(slot_->type.strides, &strides_); }
  int64_t numel_custom() const override;
  int64_t storage_offset_custom() const override;
  // torch's own would decide at once what sizes that vary leave open.
  c10::SymBool sym_is_contiguous_custom(at::MemoryFormat format) const override;
  c10::intrusive_ptr<TensorImpl> shallow_copy_and_detach(const c10::VariableVersion& version,
                                                         bool allow_metadata_change) const override;
  c10::intrusive_ptr<TensorImpl> shallow_copy_and_detach(c10::VariableVersion&& version,
                                                         bool allow_metadata_change) const override;
  void shallow_copy_from(const c10::intrusive_ptr<TensorImpl>& other) override;
  // Becomes what `other` is, on its memory; its own version goes on.
  void become(const FakeImpl& other);
  // It was given the data of another tensor: x.data = y.
  bool given_data() const { return given_data_; }

 private:
  // A copy of `from`'s place; the caller copies the metadata.
  FakeImpl(const FakeImpl& from, c10::intrusive_ptr<FakeStorage> storage);
  friend class c10::intrusive_ptr<FakeImpl>;
  void take_metadata();
  template <class Version>
  c10::intrusive_ptr<TensorImpl> copy(Version&& version, bool allow_metadata_change) const;

  c10::IntArrayRef numbers(const ir::Dims& dims, std::vector<int64_t>* into) const;

  mutable std::vector<int64_t> sizes_, strides_;  // what numbers() gave out
  c10::Device device_;
  std::shared_ptr<Slot> slot_;
  bool given_data_ = false;
  ir::ShapeEnv& env_;
};

// Null when the tensor's memory isn't a stand-in's.
FakeStorage* fake_storage(const c10::TensorImpl* impl);
inline FakeStorage* fake_storage(const at::TensorBase& tensor) { return fake_storage(tensor.unsafeGetTensorImpl()); }
// Null for other tensors, among them plain ones that share a stand-in's storage (Tensor._make_subclass makes such).
FakeImpl* fake_impl(const at::TensorBase& tensor);

// A new stand-in with memory of its own. Its keys follow the thread's inference mode, as for any new tensor.
at::Tensor make_fake(ir::ShapeEnv& env, uint64_t recording, ir::TensorType type, ir::ValueRef value);
// A view of `self` whose slot hangs below self's.
at::Tensor make_fake_view(ir::ShapeEnv& env, const at::Tensor& self, std::shared_ptr<Slot> slot);

}  // namespace graphlift::torch_layer
