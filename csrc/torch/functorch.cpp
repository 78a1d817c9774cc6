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
  PyObject* innermost = find("peek_interpreter_stack");
};

const Functions& functions() {
  static constinit Once<Functions> once;
  return once.get([] { return Functions(); });
}

// How a level is closed that a transform of this kind has opened.
constexpr std::pair<std::string_view, const char*> kClosing[] = {
    {"TransformType.Vmap", "_vmap_decrement_nesting"},
    {"TransformType.Grad", "_grad_decrement_nesting"},
    {"TransformType.Jvp", "_jvp_decrement_nesting"},
    {"TransformType.Functionalize", "_func_decrement_nesting"},
};

bool close_innermost() {
  const Ref level = Ref::steal(PyObject_CallNoArgs(functions().innermost));
  const Ref key = level ? Ref::steal(PyObject_CallMethod(level.get(), "key", nullptr)) : Ref();
  const Ref words = key ? Ref::steal(PyObject_Str(key.get())) : Ref();
  const char* text = words ? PyUnicode_AsUTF8(words.get()) : nullptr;
  if (!text) return false;
  for (const auto& [kind, name] : kClosing) {
    if (kind != text) continue;
    const Ref close = Ref::steal(find(name));
    return close && Ref::steal(PyObject_CallNoArgs(close.get()));
  }
  return false;
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

// Runs in a destructor, perhaps with an exception on its way. torch's own function for it fails in torch 2.11.
void close_functorch_levels(size_t down_to) {
  if (functorch_levels() <= down_to) return;
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  while (functorch_levels() > down_to && close_innermost()) continue;
  if (PyErr_Occurred()) PyErr_WriteUnraisable(nullptr);
  PyErr_Restore(type, value, traceback);
}

}  // namespace graphlift::torch_layer
