// Owns: how the objects in a call of the program's are written down for graphlift.foreign: plain constants as they are,
// everything else as a tuple whose first item says what it is.
#include <torch/csrc/Device.h>
#include <torch/csrc/DynamicTypes.h>
#include <torch/csrc/autograd/python_variable.h>

#include "torch/fake.h"
#include "torch/objects.h"
#include "torch/program_calls.h"
#include "torch/sym_node.h"
#include "torch/tracer.h"

namespace graphlift::torch_layer {
namespace {

bool is_plain(PyObject* object) {
  if (object == Py_None || object == Py_Ellipsis || PyBool_Check(object)) return true;
  if (PyLong_CheckExact(object) || PyFloat_CheckExact(object) || PyUnicode_CheckExact(object)) return true;
  return PyComplex_CheckExact(object) || is_singleton(object) || is_device(object);
}

Ref symbolic(const ir::Sym& sym) {
  if (sym.is_constant()) return Ref::steal(PyLong_FromLongLong(sym.constant()));
  return Ref::steal(Py_BuildValue("(ss)", "symbolic", sym.str().c_str()));
}

Ref dims(c10::SymIntArrayRef sizes) {
  Ref list = Ref::steal(PyList_New(0));
  for (const c10::SymInt& size : sizes) {
    const std::optional<ir::Sym> sym = to_sym(size);
    const Ref item = sym ? symbolic(*sym) : Ref();
    if (!item || PyList_Append(list.get(), item.get()) < 0) return {};
  }
  return list;
}

Ref type_of(const at::Tensor& tensor) {
  const Ref sizes = dims(tensor.sym_sizes()), strides = sizes ? dims(tensor.sym_strides()) : Ref();
  const Ref device = Ref::steal(THPDevice_New(tensor.device()));
  if (!strides || !device) return {};
  auto* dtype = reinterpret_cast<PyObject*>(torch::getTHPDtype(tensor.scalar_type()));
  return Ref::steal(Py_BuildValue("(sOOOOO)", "tensor", sizes.get(), strides.get(), dtype, device.get(),
                                  tensor.requires_grad() ? Py_True : Py_False));
}

}  // namespace

Ref ProgramCalls::encode(PyObject* object) {
  if (is_plain(object)) return Ref::borrow(object);
  if (is_tensor(object)) return encode_tensor(object);
  if (const std::optional<ir::Sym> sym = tracer_.sym_of(object)) return symbolic(*sym);
  if (PyTuple_CheckExact(object) || is_torch_size(object))
    return encode_items(PySequence_Fast_ITEMS(object), PyTuple_GET_SIZE(object), "tuple");
  if (PyList_CheckExact(object)) return encode_items(PySequence_Fast_ITEMS(object), PyList_GET_SIZE(object), "list");
  if (PyDict_CheckExact(object)) return encode_dict(object);
  if (PySlice_Check(object)) {
    auto* slice = reinterpret_cast<PySliceObject*>(object);
    PyObject* const parts[] = {slice->start, slice->stop, slice->step};
    return encode_items(parts, 3, "slice");
  }
  const bool number = is_graph_float(object);
  refuse(number ? "a float that varies between calls" : std::string("an argument of type ") + Py_TYPE(object)->tp_name);
  return {};
}

// (kind, [items])
Ref ProgramCalls::encode_items(PyObject* const* items, Py_ssize_t count, const char* kind) {
  Ref list = Ref::steal(PyList_New(0));
  for (Py_ssize_t i = 0; i < count; ++i) {
    const Ref item = encode(items[i]);
    if (!item || PyList_Append(list.get(), item.get()) < 0) return {};
  }
  return Ref::steal(Py_BuildValue("(sO)", kind, list.get()));
}

Ref ProgramCalls::encode_dict(PyObject* dict) {
  Ref made = Ref::steal(PyDict_New());
  PyObject *key, *value;
  for (Py_ssize_t at = 0; PyDict_Next(dict, &at, &key, &value);) {
    const Ref item = encode(value);
    if (!item || PyDict_SetItem(made.get(), key, item.get()) < 0) return {};
  }
  return Ref::steal(Py_BuildValue("(sO)", "dict", made.get()));
}

// A result of an earlier call, or an input.
Ref ProgramCalls::encode_tensor(PyObject* tensor) {
  if (const auto known = known_.find(tensor); known != known_.end()) return known->second.reference;
  if (is_stand_in(tensor) && fake_storage(THPVariable_Unpack(tensor)))
    if (const std::optional<int> primal = tracer_.primal_of(tensor))
      return Ref::steal(Py_BuildValue("(siO)", "input", *primal, type_of(THPVariable_Unpack(tensor)).get()));
  refuse("a tensor that no function of torch's gave to the program");
  return {};
}

// The result with a type for each tensor in it, which is known by its place from now on.
Ref ProgramCalls::describe_result(PyObject* result, long node, std::vector<long>* path) {
  if (is_tensor(result)) {
    const Ref place = Ref::steal(PyTuple_New(static_cast<Py_ssize_t>(path->size())));
    for (size_t i = 0; place && i < path->size(); ++i)
      PyTuple_SET_ITEM(place.get(), static_cast<Py_ssize_t>(i), PyLong_FromLong((*path)[i]));
    Ref reference = place ? Ref::steal(Py_BuildValue("(slO)", "value", node, place.get())) : Ref();
    if (!reference) return {};
    known_[result] = {Ref::borrow(result), std::move(reference)};
    return type_of(THPVariable_Unpack(result));
  }
  if (!PyTuple_Check(result) && !PyList_Check(result)) return Ref::borrow(Py_None);
  Ref list = Ref::steal(PyList_New(0));
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(result); ++i) {
    path->push_back(static_cast<long>(i));
    const Ref item = describe_result(PySequence_Fast_GET_ITEM(result, i), node, path);
    path->pop_back();
    if (!item || PyList_Append(list.get(), item.get()) < 0) return {};
  }
  return list;
}

Ref ProgramCalls::stack_now() const {
  Ref list = Ref::steal(PyList_New(0));
  for (const ir::SourceLine& line : stack_()) {
    const Ref item = Ref::steal(Py_BuildValue("(sis)", line.file.c_str(), line.line, line.function.c_str()));
    if (!item || PyList_Append(list.get(), item.get()) < 0) return {};
  }
  return list;
}

}  // namespace graphlift::torch_layer
