#include "torch/dispatch_mode.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/core/SafePyObject.h>
#include <c10/core/impl/PyInterpreter.h>
#include <c10/core/impl/TorchDispatchModeTLS.h>
#include <torch/csrc/PyInterpreter.h>

#include <string>
#include <vector>

#include "base/error.h"
#include "torch/recorder.h"

namespace graphlift::torch_layer {
namespace {

using c10::TensorImpl;
using c10::impl::PyInterpreter;
using c10::impl::TorchDispatchModeTLS;

constexpr const char* kCapsuleName = "graphlift.mode";

PyInterpreter* our_interpreter();

// torch's own vtable, except that calls under the mode go to the recorder.
class Vtable final : public c10::impl::PyInterpreterVTable {
 public:
  explicit Vtable(const PyInterpreterVTable* torch) : torch_(*torch) {}

  std::string name() const override { return "graphlift"; }
  void dispatch(const c10::OperatorHandle& op, torch::jit::Stack* stack) const override {
    const auto& mode = TorchDispatchModeTLS::get_stack_at(TorchDispatchModeTLS::stack_len() - 1);
    PyObject* object = mode->ptr(our_interpreter());
    // The capsule's pointer and name never change; reading them needs no GIL.
    auto* link = static_cast<ModeLink*>(PyCapsule_GetPointer(object, kCapsuleName));
    GL_CHECK(link && link->recorder, "a call reaches a recording that has ended");
    link->recorder->call(op, *stack);
  }

  void incref(PyObject* object) const override { torch_.incref(object); }
  void decref(PyObject* object) const override { torch_.decref(object); }
  bool try_incref(const c10::impl::PyObjectSlot& slot) const override { return torch_.try_incref(slot); }
  size_t refcnt(PyObject* object) const override { return torch_.refcnt(object); }
  c10::intrusive_ptr<TensorImpl> detach(const TensorImpl* self) const override { return torch_.detach(self); }
  void reportErrorCallback(PyObject* callback, c10::DispatchKey key) const override {
    torch_.reportErrorCallback(callback, key);
  }
  void python_op_registration_trampoline(const c10::OperatorHandle& op, c10::DispatchKey key, c10::DispatchKeySet keys,
                                         torch::jit::Stack* stack, bool with_keyset, bool with_op) const override {
    torch_.python_op_registration_trampoline(op, key, keys, stack, with_keyset, with_op);
  }
  void throw_abstract_impl_not_imported_error(std::string op, const char* module, const char* context) const override {
    torch_.throw_abstract_impl_not_imported_error(std::move(op), module, context);
  }
  void python_dispatcher(const c10::OperatorHandle& op, c10::DispatchKeySet keys,
                         torch::jit::Stack* stack) const override {
    torch_.python_dispatcher(op, keys, stack);
  }
  bool is_contiguous(const TensorImpl* t, at::MemoryFormat format) const override {
    return torch_.is_contiguous(t, format);
  }
  c10::SymBool sym_is_contiguous(const TensorImpl* t, at::MemoryFormat format) const override {
    return torch_.sym_is_contiguous(t, format);
  }
  bool is_strides_like(const TensorImpl* t, at::MemoryFormat format) const override {
    return torch_.is_strides_like(t, format);
  }
  bool is_non_overlapping_and_dense(const TensorImpl* t) const override {
    return torch_.is_non_overlapping_and_dense(t);
  }
  c10::Device device(const TensorImpl* t) const override { return torch_.device(t); }
  int64_t dim(const TensorImpl* t) const override { return torch_.dim(t); }
  c10::IntArrayRef strides(const TensorImpl* t) const override { return torch_.strides(t); }
  c10::IntArrayRef sizes(const TensorImpl* t) const override { return torch_.sizes(t); }
  c10::SymIntArrayRef sym_sizes(const TensorImpl* t) const override { return torch_.sym_sizes(t); }
  c10::Layout layout(const TensorImpl* t) const override { return torch_.layout(t); }
  int64_t numel(const TensorImpl* t) const override { return torch_.numel(t); }
  c10::SymInt sym_numel(const TensorImpl* t) const override { return torch_.sym_numel(t); }
  c10::SymIntArrayRef sym_strides(const TensorImpl* t) const override { return torch_.sym_strides(t); }
  c10::SymInt sym_storage_offset(const TensorImpl* t) const override { return torch_.sym_storage_offset(t); }
  void trace_gpu_event_creation(c10::DeviceType device, uintptr_t event) const override {
    torch_.trace_gpu_event_creation(device, event);
  }
  void trace_gpu_event_deletion(c10::DeviceType device, uintptr_t event) const override {
    torch_.trace_gpu_event_deletion(device, event);
  }
  void trace_gpu_event_record(c10::DeviceType device, uintptr_t event, uintptr_t stream) const override {
    torch_.trace_gpu_event_record(device, event, stream);
  }
  void trace_gpu_event_wait(c10::DeviceType device, uintptr_t event, uintptr_t stream) const override {
    torch_.trace_gpu_event_wait(device, event, stream);
  }
  void trace_gpu_memory_allocation(c10::DeviceType device, uintptr_t pointer) const override {
    torch_.trace_gpu_memory_allocation(device, pointer);
  }
  void trace_gpu_memory_deallocation(c10::DeviceType device, uintptr_t pointer) const override {
    torch_.trace_gpu_memory_deallocation(device, pointer);
  }
  void trace_gpu_stream_creation(c10::DeviceType device, uintptr_t stream) const override {
    torch_.trace_gpu_stream_creation(device, stream);
  }
  void trace_gpu_device_synchronization(c10::DeviceType device) const override {
    torch_.trace_gpu_device_synchronization(device);
  }
  void trace_gpu_stream_synchronization(c10::DeviceType device, uintptr_t stream) const override {
    torch_.trace_gpu_stream_synchronization(device, stream);
  }
  void trace_gpu_event_synchronization(c10::DeviceType device, uintptr_t event) const override {
    torch_.trace_gpu_event_synchronization(device, event);
  }
  void reset_backward_hooks(const TensorImpl* t) const override { torch_.reset_backward_hooks(t); }

 private:
  const PyInterpreterVTable& torch_;
};

// Lives as long as the process: modes and saved thread states point to it.
PyInterpreter* our_interpreter() {
  static PyInterpreter* interpreter = new PyInterpreter(new Vtable(getPyInterpreter()->vtable_));
  return interpreter;
}

bool is_mode(const std::shared_ptr<c10::impl::PyObject_TorchDispatchMode>& mode, PyObject* object) {
  return &mode->pyinterpreter() == our_interpreter() && mode->ptr(our_interpreter()) == object;
}

}  // namespace

Ref make_mode_object(Recorder* recorder, ModeLink** link) {
  *link = new ModeLink{recorder};
  Ref object = Ref::steal(PyCapsule_New(*link, kCapsuleName, [](PyObject* capsule) {
    delete static_cast<ModeLink*>(PyCapsule_GetPointer(capsule, kCapsuleName));
  }));
  GL_CHECK(object, "no memory for the mode object");
  return object;
}

void push_mode(PyObject* mode_object) {
  TorchDispatchModeTLS::push_non_infra_mode_onto_stack(
      std::make_shared<c10::impl::PyObject_TorchDispatchMode>(Py_NewRef(mode_object), our_interpreter()));
}

void pop_mode(PyObject* mode_object) {
  std::vector<std::shared_ptr<c10::impl::PyObject_TorchDispatchMode>> above;
  while (TorchDispatchModeTLS::stack_len() > 0) {
    auto top = TorchDispatchModeTLS::pop_stack();
    if (is_mode(top, mode_object)) break;
    above.push_back(std::move(top));
  }
  for (auto mode = above.rbegin(); mode != above.rend(); ++mode)
    TorchDispatchModeTLS::push_non_infra_mode_onto_stack(std::move(*mode));
}

ModeOff::ModeOff() : mode_(TorchDispatchModeTLS::pop_stack()) {}

ModeOff::~ModeOff() {
  TorchDispatchModeTLS::push_non_infra_mode_onto_stack(
      std::static_pointer_cast<c10::impl::PyObject_TorchDispatchMode>(std::move(mode_)));
}

int64_t foreign_modes() {
  int64_t count = 0;
  for (int64_t i = 0; i < TorchDispatchModeTLS::stack_len(); ++i)
    count += &TorchDispatchModeTLS::get_stack_at(i)->pyinterpreter() != our_interpreter();
  return count;
}

}  // namespace graphlift::torch_layer
