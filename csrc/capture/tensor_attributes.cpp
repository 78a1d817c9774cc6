// Owns: see tensor_attributes.h.
#include "capture/tensor_attributes.h"

#include "capture/calls.h"
#include "capture/checkpoints.h"
#include "capture/containers.h"
#include "capture/gradient_hooks.h"
#include "capture/gradients.h"
#include "cpython/imported.h"
#include "cpython/instance.h"

namespace graphlift::capture {

using guards::GuardKind;
using guards::OriginId;
using guards::OriginKind;

namespace {

// C getters that would hand out data, memory or an autograd graph that the stand-in does not have.
constexpr const char* kRefused[] = {
    "data_ptr",        "_cdata",          "__cuda_array_interface__",    "__array_interface__", "__dlpack__", "storage",
    "untyped_storage", "_backward_hooks", "_post_accumulate_grad_hooks", "output_nr",           "_version",   "names",
    "retains_grad"};

bool is_named(PyObject* name, const char* text) { return PyUnicode_CompareWithASCIIString(name, text) == 0; }

bool is_true(PyObject* object, const char* name) {
  Ref value = Ref::steal(PyObject_GetAttrString(object, name));
  if (!value) PyErr_Clear();
  return value.get() == Py_True;
}

// A stand-in without a history answers as the tensor behind it: that it has none is guarded.
Ref history(Capture& capture, PyObject* tensor) {
  Ref value = Ref::steal(PyObject_GetAttrString(tensor, "grad_fn"));
  const bool known = value && (value.get() == Py_None || is_module_hook_node(capture, value.get()));
  return value && !known ? break_here(capture, "unsupported_attribute", "torch.Tensor.grad_fn") : std::move(value);
}

// Whether it belongs to an autograd graph, which a checkpoint with reentry has in backward only.
Ref in_a_graph(Capture& capture, PyObject* tensor, PyObject* name) {
  Ref value = Ref::steal(PyObject_GetAttr(tensor, name));
  if (value && differs_in_backward(capture) && !is_true(tensor, "is_leaf"))
    return break_here(capture, "checkpoint_asks", std::string("torch.Tensor.") + PyUnicode_AsUTF8(name));
  return value;
}

// What a tensor from outside is a view of is not known here, nor which object it is.
Ref base(Capture& capture, PyObject* tensor) {
  Ref value = Ref::steal(PyObject_GetAttrString(tensor, "_base"));
  if (value && (capture.outside_tensor(tensor) || capture.outside_tensor(value.get())))
    return break_here(capture, "unsupported_attribute", "torch.Tensor._base");
  return value;
}

std::optional<OriginId> origin_of_stand_in(Capture& capture, PyObject* stand_in) {
  const std::optional<int> primal = capture.tracer->primal_of(stand_in);
  if (!primal) return std::nullopt;
  return capture.primal_origins[static_cast<size_t>(*primal)];
}

// Python attributes that the user put on the outside tensor.
Ref outside_dict_attr(Capture& capture, PyObject* real, OriginId origin, PyObject* name) {
  PyObject* dict = cpython::instance_dict(real);
  if (!dict) return Ref();
  capture.know(dict, capture.origins().child(origin, OriginKind::TensorDict));
  return dict_get(capture, dict, name);
}

bool has_same(PyObject* a, PyObject* b, const char* name) {
  Ref left = Ref::steal(PyObject_GetAttrString(a, name)), right = Ref::steal(PyObject_GetAttrString(b, name));
  const int same = left && right ? PyObject_RichCompareBool(left.get(), right.get(), Py_EQ) : -1;
  if (same < 0) PyErr_Clear();
  return same == 1;
}

// x.data = y: from now on x lies on y's memory. A tensor from outside is given it at the exit, too.
int set_data(Capture& capture, PyObject* tensor, PyObject* value) {
  const bool known = value && torch_layer::is_stand_in(value) && torch_layer::can_be_output(value) &&
                     torch_layer::can_be_output(tensor) && !is_true(value, "requires_grad") &&
                     has_same(tensor, value, "dtype") && has_same(tensor, value, "device");
  const bool outside = capture.tensor_of_stand_in.count(tensor);
  if (!known || !is_true(tensor, "is_leaf") || (!outside && is_true(tensor, "requires_grad")))
    return break_status(capture, "tensor_attribute_store", "data");
  if (torch_layer::lie_alike(tensor, value)) return 0;  // x.data += 1 assigns what was written into
  if (PyObject_SetAttrString(tensor, "data", value) < 0) return -1;
  if (capture.tracer->calls()) capture.tracer->calls()->refuse("the data of a tensor is assigned");
  if (!outside) return 0;
  capture.told_apart.insert(tensor);
  Ref setter = cpython::imported("graphlift.replayed", "set_data");
  if (!setter) return -1;
  std::vector<Ref> args;
  for (PyObject* part : {tensor, value}) args.push_back(Ref::borrow(part));
  capture.deferred_calls.emplace_back(std::move(setter), std::move(args));
  return 0;
}

}  // namespace

Ref tensor_get_attr(Capture& capture, PyObject* tensor, PyObject* name) {
  PyObject* real = capture.outside_tensor(tensor);
  const std::optional<OriginId> origin = real ? origin_of_stand_in(capture, tensor) : std::nullopt;
  const OriginId at = origin.value_or(guards::kNoOrigin);
  if (is_named(name, "grad")) return get_gradient(capture, tensor);
  if (is_named(name, "grad_fn")) return history(capture, tensor);
  if (is_named(name, "_base")) return base(capture, tensor);
  if (is_named(name, "requires_grad") || is_named(name, "is_leaf")) return in_a_graph(capture, tensor, name);
  PyObject* found = _PyType_Lookup(Py_TYPE(tensor), name);
  if (found && Py_TYPE(found)->tp_descr_set) {
    for (const char* refused : kRefused)
      if (is_named(name, refused))
        return break_here(capture, "unsupported_attribute", std::string("torch.Tensor.") + refused);
    if (PyObject_TypeCheck(found, &PyProperty_Type)) {
      Ref getter = Ref::steal(PyObject_GetAttrString(found, "fget"));
      return getter ? call_known(capture, getter.get(), tensor) : getter;
    }
    if (is_named(name, "__dict__") && real && origin) {
      outside_dict_attr(capture, real, at, name);
      if (PyErr_Occurred()) return Ref();
      return Ref::borrow(cpython::instance_dict(real));
    }
    Ref value = Ref::steal(PyObject_GetAttr(tensor, name));
    return capture.pending ? Ref() : std::move(value);
  }
  if (real && origin && !found) {
    Ref value = outside_dict_attr(capture, real, at, name);
    if (value || PyErr_Occurred()) return value;
  }
  Ref value = Ref::steal(PyObject_GetAttr(tensor, name));
  return capture.pending ? Ref() : std::move(value);
}

int tensor_set_attr(Capture& capture, PyObject* tensor, PyObject* name, PyObject* value) {
  PyObject* real = capture.outside_tensor(tensor);
  const char* text = PyUnicode_AsUTF8(name);
  PyObject* found = _PyType_Lookup(Py_TYPE(tensor), name);
  if (is_named(name, "grad")) return set_gradient(capture, tensor, value ? value : Py_None);
  if (is_named(name, "data")) return set_data(capture, tensor, value);
  if (real) {
    if (found) return break_status(capture, "tensor_attribute_store", text);
    const std::optional<OriginId> origin = origin_of_stand_in(capture, tensor);
    if (!origin) return break_status(capture, "tensor_attribute_store", text);
    outside_dict_attr(capture, real, *origin, name);
    if (PyErr_Occurred()) return -1;
    PyObject* dict = cpython::instance_dict(real);
    return dict ? dict_set(capture, dict, name, value) : break_status(capture, "tensor_attribute_store", text);
  }
  return value ? PyObject_SetAttr(tensor, name, value) : PyObject_DelAttr(tensor, name);
}

Ref tensor_length(Capture& capture, PyObject* tensor) {
  Ref size = Ref::steal(PyObject_CallMethod(tensor, "size", nullptr));
  if (!size) return size;
  if (PySequence_Size(size.get()) == 0) {
    PyErr_SetString(PyExc_TypeError, "len() of a 0-d tensor");
    return Ref();
  }
  Ref first = Ref::steal(PySequence_GetItem(size.get(), 0));
  return first ? capture.concrete(first.get()) : first;
}

}  // namespace graphlift::capture
