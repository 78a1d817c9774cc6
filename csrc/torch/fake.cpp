#include "torch/fake.h"

#include <c10/core/Storage.h>

#include <atomic>
#include <utility>

#include "base/error.h"
#include "torch/convert.h"
#include "torch/sym_node.h"

namespace graphlift::torch_layer {
namespace {

c10::DispatchKeySet backend_keys(c10::Device device) {
  return c10::DispatchKeySet(c10::computeDispatchKey(std::nullopt, c10::kStrided, device));
}

caffe2::TypeMeta type_meta(ir::DType dtype) { return c10::scalarTypeToTypeMeta(to_torch(dtype)); }

c10::Storage as_storage(c10::intrusive_ptr<FakeStorage> storage) {
  return c10::Storage(c10::intrusive_ptr<c10::StorageImpl>(std::move(storage)));
}

}  // namespace

namespace {

std::atomic<uint64_t> born_last = 0;

}  // namespace

uint64_t FakeStorage::last_born() { return born_last; }

FakeStorage::FakeStorage(uint64_t recording_, std::shared_ptr<Slot> base_, c10::Device device, c10::SymInt bytes)
    : StorageImpl(use_byte_size_t(), std::move(bytes), at::DataPtr(nullptr, device), nullptr, false),
      born(++born_last),
      recording(recording_),
      base(std::move(base_)) {
  release_data_and_set_meta_custom_data_ptr_error_msg_(kNoData);
  set_throw_on_mutable_data_ptr();
}

FakeImpl::FakeImpl(c10::intrusive_ptr<FakeStorage> storage, c10::DispatchKeySet keys, std::shared_ptr<Slot> slot,
                   ir::ShapeEnv& env)
    : TensorImpl(as_storage(std::move(storage)), keys, type_meta(slot->type.dtype)),
      device_(to_torch(slot->type.device)),
      slot_(std::move(slot)),
      env_(env) {
  set_custom_device(true);
  take_metadata();
}

FakeImpl::FakeImpl(ImplType view, c10::intrusive_ptr<FakeStorage> storage, c10::DispatchKeySet keys,
                   std::shared_ptr<Slot> slot, ir::ShapeEnv& env)
    : TensorImpl(view, as_storage(std::move(storage)), keys, type_meta(slot->type.dtype)),
      device_(to_torch(slot->type.device)),
      slot_(std::move(slot)),
      env_(env) {
  set_custom_device(true);
  take_metadata();
}

FakeImpl::FakeImpl(const FakeImpl& from, c10::intrusive_ptr<FakeStorage> storage)
    : TensorImpl(VIEW, as_storage(std::move(storage)), from.key_set(), from.dtype()),
      device_(from.device_),
      slot_(from.slot_),
      env_(from.env_) {
  set_custom_device(true);
}

void FakeImpl::take_metadata() {
  const ir::TensorType& type = slot_->type;
  device_opt_ = device_;
  auto sizes = to_sym_ints(env_, type.sizes);
  auto strides = to_sym_ints(env_, type.strides);
  set_sizes_and_strides(sizes, strides, to_sym_int(env_, type.offset));
}

c10::IntArrayRef FakeImpl::numbers(const ir::Dims& dims, std::vector<int64_t>* into) const {
  into->clear();
  for (const ir::Sym& dim : dims) into->push_back(env_.specialize(dim));
  return *into;
}

// Other dimensions than the one that is asked for stay as they are.
int64_t FakeImpl::size_custom(int64_t d) const {
  const int64_t at = c10::maybe_wrap_dim(d, dim(), /*wrap_scalar=*/false);
  return env_.specialize(slot_->type.sizes[static_cast<size_t>(at)]);
}

int64_t FakeImpl::numel_custom() const { return env_.specialize(slot_->type.numel()); }
int64_t FakeImpl::storage_offset_custom() const { return env_.specialize(slot_->type.offset); }

c10::SymBool FakeImpl::sym_is_contiguous_custom(at::MemoryFormat format) const {
  if (format != at::MemoryFormat::Contiguous || !has_symbolic_sizes_strides_)
    return TensorImpl::sym_is_contiguous_custom(format);
  return torch_layer::is_contiguous(env_, slot_->type);
}

void FakeImpl::set_slot(std::shared_ptr<Slot> slot) {
  slot_ = std::move(slot);
  take_metadata();
}

template <class Version>
c10::intrusive_ptr<c10::TensorImpl> FakeImpl::copy(Version&& version, bool allow_metadata_change) const {
  auto storage = c10::intrusive_ptr<FakeStorage>::reclaim_copy(fake_storage(this));
  auto impl = c10::intrusive_ptr<FakeImpl>::make(*this, std::move(storage));
  copy_tensor_metadata(this, impl.get(), std::forward<Version>(version), allow_metadata_change);
  return impl;
}

c10::intrusive_ptr<c10::TensorImpl> FakeImpl::shallow_copy_and_detach(const c10::VariableVersion& version,
                                                                      bool allow_metadata_change) const {
  return copy(version, allow_metadata_change);
}

c10::intrusive_ptr<c10::TensorImpl> FakeImpl::shallow_copy_and_detach(c10::VariableVersion&& version,
                                                                      bool allow_metadata_change) const {
  return copy(std::move(version), allow_metadata_change);
}

void FakeImpl::shallow_copy_from(const c10::intrusive_ptr<TensorImpl>& other) {
  auto* fake = dynamic_cast<FakeImpl*>(other.get());
  TORCH_CHECK(fake, "graphlift: a tensor of the captured program is given the data of one from outside");
  given_data_ |= slot_ != fake->slot_;
  become(*fake);
}

void FakeImpl::become(const FakeImpl& other) {
  copy_tensor_metadata(&other, this, version_counter(), allow_tensor_metadata_change());
  slot_ = other.slot_;
  device_ = other.device_;
}

FakeStorage* fake_storage(const c10::TensorImpl* impl) {
  if (!impl->has_storage()) return nullptr;
  return dynamic_cast<FakeStorage*>(impl->unsafe_storage().unsafeGetStorageImpl());
}

FakeImpl* fake_impl(const at::TensorBase& tensor) { return dynamic_cast<FakeImpl*>(tensor.unsafeGetTensorImpl()); }

at::Tensor make_fake(ir::ShapeEnv& env, uint64_t recording, ir::TensorType type, ir::ValueRef value) {
  c10::Device device = to_torch(type.device);
  auto slot = std::make_shared<Slot>();
  slot->type = std::move(type);
  slot->value = value;
  ir::Sym bytes = slot->type.numel() * ir::Sym(ir::bytes(slot->type.dtype));
  auto storage = c10::make_intrusive<FakeStorage>(recording, slot, device, to_sym_int(env, bytes));
  return at::Tensor(c10::make_intrusive<FakeImpl>(std::move(storage), backend_keys(device), std::move(slot), env));
}

at::Tensor make_fake_view(ir::ShapeEnv& env, const at::Tensor& self, std::shared_ptr<Slot> slot) {
  auto storage = c10::intrusive_ptr<FakeStorage>::reclaim_copy(fake_storage(self));
  storage->views.push_back(slot);
  return at::Tensor(
      c10::make_intrusive<FakeImpl>(c10::TensorImpl::VIEW, std::move(storage), self.key_set(), std::move(slot), env));
}

}  // namespace graphlift::torch_layer
