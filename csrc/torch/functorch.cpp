// Owns: see functorch.h.
#include "torch/functorch.h"

#include <c10/core/impl/LocalDispatchKeySet.h>
#include <torch/csrc/autograd/python_variable.h>

#include "base/error.h"
#include "base/once.h"
#include "torch/ambient_state.h"

namespace graphlift::torch_layer {
namespace {

constexpr c10::DispatchKeySet kWrappers({c10::DispatchKey::FuncTorchGradWrapper, c10::DispatchKey::FuncTorchBatched});

PyObject* find(const char* name) {
  Ref module = Ref::steal(PyImport_ImportModule("torch._C._functorch"));
  Ref found = module ? Ref::steal(PyObject_GetAttrString(module.get(), name)) : Ref();
  PyErr_Clear();
  return found.release();
}

struct Functions {
  PyObject* unwrapped = find("get_unwrapped");
  PyObject* depth = find("get_dynamic_layer_stack_depth");
  PyObject* close = find("pop_dynamic_layer_stack_and_undo_to_depth");
};

const Functions& functions() {
  static constinit Once<Functions> once;
  return once.get([] { return Functions(); });
}

}  // namespace

bool in_functorch() {
  return c10::impl::tls_is_dispatch_key_included(c10::DispatchKey::FuncTorchDynamicLayerFrontMode);
}

bool has_no_memory(const at::TensorBase& tensor) {
  return tensor.key_set().has_any(kWrappers | c10::DispatchKeySet(c10::DispatchKey::Batched));
}

bool is_functorch_wrapper(const at::TensorBase& tensor) { return tensor.key_set().has_any(kWrappers); }

Ref innermost(PyObject* tensor) {
  Ref at = Ref::borrow(tensor);
  while (is_functorch_wrapper(THPVariable_Unpack(at.get()))) {
    Ref inner = Ref::steal(PyObject_CallOneArg(functions().unwrapped, at.get()));
    GL_CHECK(inner, "a wrapper of functorch's holds no tensor");
    at = std::move(inner);
  }
  return at;
}

size_t functorch_levels() {
  if (!in_functorch()) return 0;
  Ref depth = Ref::steal(PyObject_CallNoArgs(functions().depth));
  GL_CHECK(depth, "functorch does not say how many levels are open");
  return PyLong_AsSize_t(depth.get());
}

void close_functorch_levels(size_t down_to) {
  if (functorch_levels() <= down_to) return;
  Ref depth = Ref::steal(PyLong_FromSize_t(down_to));
  Ref done = depth ? Ref::steal(PyObject_CallOneArg(functions().close, depth.get())) : Ref();
  GL_CHECK(done, "a level of functorch's can't be closed");
}

}  // namespace graphlift::torch_layer
