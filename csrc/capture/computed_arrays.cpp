// Owns: see computed_arrays.h.
#include "capture/computed_arrays.h"

#include <algorithm>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "capture/arrays.h"
#include "capture/attributes.h"
#include "capture/calls.h"
#include "capture/containers.h"
#include "cpython/hook.h"
#include "cpython/imported.h"

namespace graphlift::capture {

using guards::OriginKind;

namespace {

Ref ours(const char* name) { return cpython::imported("graphlift.arrays", name); }

// Runs a function of graphlift.arrays: what it does with stand-ins is recorded, its own code is not captured.
Ref run(Capture& capture, const char* name, std::initializer_list<PyObject*> args) {
  const cpython::HookScope nobody(nullptr);
  Ref function = ours(name);
  std::vector<PyObject*> all(args);
  Ref result = function ? Ref::steal(PyObject_Vectorcall(function.get(), all.data(), all.size(), nullptr)) : Ref();
  return capture.pending ? Ref() : std::move(result);
}

// An error is numpy's to raise, in its own words.
Ref refuse(Capture& capture, const std::string& what) {
  if (capture.pending) return Ref();
  PyErr_Clear();
  return break_here(capture, "array_arithmetic", what);
}

bool has_array(PyObject* object) {
  if (is_array(object)) return true;
  if (!PyTuple_CheckExact(object) && !PyList_CheckExact(object)) return false;
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(object); ++i)
    if (is_array(PySequence_Fast_GET_ITEM(object, i))) return true;
  return false;
}

bool is_kind(PyObject* object) {
  if (!PyType_Check(object)) return is_array_kind(object);
  auto* type = reinterpret_cast<PyTypeObject*>(object);
  return is_array_number_type(type) || type == &PyLong_Type || type == &PyFloat_Type || type == &PyBool_Type;
}

Ref argument(Capture& capture, PyObject* object);

// Null without an error: it holds something that is not followed.
Ref sequence(Capture& capture, PyObject* object) {
  if (capture.is_outside(object)) return Ref();
  Ref items = Ref::steal(PyList_New(0));
  for (Py_ssize_t i = 0; items && i < PySequence_Fast_GET_SIZE(object); ++i) {
    Ref item = argument(capture, PySequence_Fast_GET_ITEM(object, i));
    if (!item || PyList_Append(items.get(), item.get()) < 0) return Ref();
  }
  return items && PyTuple_CheckExact(object) ? Ref::steal(PyList_AsTuple(items.get())) : std::move(items);
}

// As graphlift.arrays sees it. Null without an error: it is not followed.
Ref argument(Capture& capture, PyObject* object) {
  if (is_array(object)) return tensor_on(capture, object);
  if (PySlice_Check(object)) return for_plain_c_code(capture, object);
  if (torch_layer::is_sym_scalar(object)) return capture.concrete(object);
  if (is_value_constant(object) || is_array_number(object) || is_kind(object)) return Ref::borrow(object);
  return PyTuple_CheckExact(object) || PyList_CheckExact(object) ? sequence(capture, object) : Ref();
}

// What numpy does about floating-point errors may be set anew for each call: only if another object says so is it
// asked.
class ErrorsAreQuiet final : public guards::LeafCheck {
 public:
  explicit ErrorsAreQuiet(Ref variable) : variable_(std::move(variable)) {}
  bool check(PyObject*, int64_t*) const override {
    PyObject* now = nullptr;
    if (PyContextVar_Get(variable_.get(), nullptr, &now) < 0) PyErr_Clear();
    Ref state = Ref::steal(now);
    if (state && state.get() == seen_.get()) return true;
    const cpython::HookScope nobody(nullptr);
    Ref quiet = ours("errors_are_quiet");
    quiet = quiet ? Ref::steal(PyObject_CallNoArgs(quiet.get())) : Ref();
    if (!quiet) PyErr_Clear();
    if (quiet.get() != Py_True) return false;
    seen_ = std::move(state);
    return true;
  }
  std::string text(const std::string&) const override { return "numpy raises no floating-point errors"; }
  std::string explain(PyObject*) const override { return "numpy raises floating-point errors, or calls what was set"; }

 private:
  Ref variable_;
  mutable Ref seen_;
};

// False: they are not quiet, or nothing that a guard can look at says so.
bool guard_errors(Capture& capture) {
  Ref variable = run(capture, "error_state", {});
  if (!variable || !PyContextVar_CheckExact(variable.get())) return false;
  auto check = std::make_unique<ErrorsAreQuiet>(std::move(variable));
  if (!check->check(nullptr, nullptr)) return false;
  capture.guards.add_global(std::move(check));
  return true;
}

Ref compute(Capture& capture, const std::string& name, const std::vector<PyObject*>& args, Py_ssize_t nargs,
            PyObject* kwnames) {
  if (!guard_errors(capture)) return refuse(capture, name);
  Ref positional = Ref::steal(PyTuple_New(nargs)), named = Ref::steal(PyDict_New());
  Ref text = Ref::steal(PyUnicode_FromStringAndSize(name.data(), static_cast<Py_ssize_t>(name.size())));
  if (!positional || !named || !text) return Ref();
  for (size_t i = 0; i < args.size(); ++i) {
    Ref arg = argument(capture, args[i]);
    if (!arg) return refuse(capture, name);
    const auto at = static_cast<Py_ssize_t>(i);
    if (at < nargs)
      PyTuple_SET_ITEM(positional.get(), at, arg.release());
    else if (PyDict_SetItem(named.get(), PyTuple_GET_ITEM(kwnames, at - nargs), arg.get()) < 0)
      return Ref();
  }
  Ref tensor = run(capture, "compute", {text.get(), positional.get(), named.get()});
  if (!tensor || tensor.get() == Py_NotImplemented) return refuse(capture, name);
  Ref array = array_on(capture, tensor.get());
  return array ? std::move(array) : refuse(capture, name);
}

std::string utf8(PyObject* text) {
  const char* words = PyUnicode_AsUTF8(text);
  return words ? words : "";
}

bool is_function_of_numpy(PyObject* callable) {
  const std::string_view type = Py_TYPE(callable)->tp_name;
  return type == "numpy.ufunc" || type == "numpy._ArrayFunctionDispatcher";
}

bool is_followed(PyObject* method) {
  const cpython::HookScope nobody(nullptr);
  Ref names = ours("method_names");
  Ref all = names ? Ref::steal(PyObject_CallNoArgs(names.get())) : Ref();
  const int found = all ? PySequence_Contains(all.get(), method) : 0;
  PyErr_Clear();
  return found == 1;
}

// Its sizes, which may vary, as a tuple.
Ref shape_of(PyObject* tensor) {
  Ref shape = Ref::steal(PyObject_GetAttrString(tensor, "shape"));
  Ref sizes = shape ? Ref::steal(PySequence_List(shape.get())) : Ref();
  return sizes ? Ref::steal(PyList_AsTuple(sizes.get())) : sizes;
}

Ref attribute_of(Capture& capture, PyObject* array, PyObject* tensor, const std::string& name) {
  if (name == "shape") return shape_of(tensor);
  if (name == "ndim") return Ref::steal(PyObject_GetAttrString(tensor, "ndim"));
  if (name == "size") return Ref::steal(PyObject_CallMethod(tensor, "numel", nullptr));
  if (name == "dtype") return run(capture, "kind", {tensor});
  return name == "T" ? compute(capture, "ndarray.transpose", {array}, 1, nullptr) : Ref();
}

}  // namespace

PyObject* computed_array(const Capture& capture, PyObject* array) {
  const auto found = capture.computed_arrays.find(array);
  return found == capture.computed_arrays.end() ? nullptr : found->second.second.get();
}

Ref array_on(Capture& capture, PyObject* tensor) {
  Ref can = run(capture, "can_be_array", {tensor});
  if (can.get() != Py_True) return Ref();
  Ref memory = Ref::steal(PyObject_CallMethod(tensor, "detach", nullptr));  // what the program does to it is its own
  Ref array = memory ? run(capture, "placeholder", {}) : Ref();
  if (!array) return array;
  PyObject* key = array.get();
  capture.computed_arrays.emplace(key, std::pair{Ref::borrow(key), std::move(memory)});
  return array;
}

namespace {

Ref detached(PyObject* tensor) { return Ref::steal(PyObject_CallMethod(tensor, "detach", nullptr)); }

PyObject* known_tensor(const Capture& capture, PyObject* array) {
  if (PyObject* tensor = computed_array(capture, array)) return tensor;
  const auto known = capture.arrays.find(array);
  return known == capture.arrays.end() ? nullptr : known->second.get();
}

// The tensor on an array from outside is an input, made anew in each call.
Ref input_on(Capture& capture, PyObject* array) {
  const Outside* outside = capture.objects.find(array);
  if (!outside || outside->origin == guards::kNoOrigin) return Ref();
  Ref tensor;
  {
    const TorchForReal real(capture);
    tensor = torch_layer::tensor_on_array(array);
  }
  Ref key = tensor ? Ref::steal(PyUnicode_InternFromString(torch_layer::kOnArray)) : Ref();
  if (!key) return key;
  Ref seen = capture.admit(tensor.get(), capture.origins().child(outside->origin, OriginKind::Custom, key.get()));
  Ref memory = seen ? detached(seen.get()) : Ref();
  if (!memory) return memory;
  capture.arrays.emplace(array, std::move(memory));
  return seen;
}

}  // namespace

Ref tensor_on(Capture& capture, PyObject* array) {
  if (!known_tensor(capture, array) && !input_on(capture, array)) return Ref();
  return Ref::borrow(known_tensor(capture, array));
}

Ref new_tensor_on(Capture& capture, PyObject* array) {
  PyObject* known = known_tensor(capture, array);
  return known ? detached(known) : input_on(capture, array);
}

Ref array_operator(Capture& capture, const char* name, std::initializer_list<PyObject*> operands) {
  return compute(capture, name, operands, static_cast<Py_ssize_t>(operands.size()), nullptr);
}

bool computed_array_attr(Capture& capture, PyObject* array, PyObject* name, Ref* result) {
  if (is_followed(name)) {  // the method itself, bound
    *result = Ref::steal(PyObject_GetAttr(array, name));
    return true;
  }
  PyObject* tensor = computed_array(capture, array);
  if (!tensor) return false;
  *result = attribute_of(capture, array, tensor, utf8(name));
  if (!*result && !PyErr_Occurred())
    *result = break_here(capture, "unsupported_attribute", "numpy.ndarray." + utf8(name));
  return true;
}

bool call_on_arrays(Capture& capture, const CallArgs& call, Ref* result) {
  PyObject* array = PyCFunction_Check(call.callable) ? PyCFunction_GET_SELF(call.callable) : nullptr;
  const bool method = array && is_array(array);
  if (!method && !is_function_of_numpy(call.callable)) return false;
  const std::span args(call.args,
                       static_cast<size_t>(call.nargs + (call.kwnames ? PyTuple_GET_SIZE(call.kwnames) : 0)));
  if (method) {
    std::vector<PyObject*> all{array};
    all.insert(all.end(), args.begin(), args.end());
    const char* name = reinterpret_cast<PyCFunctionObject*>(call.callable)->m_ml->ml_name;
    *result = compute(capture, std::string("ndarray.") + name, all, call.nargs + 1, call.kwnames);
    return true;
  }
  if (std::none_of(args.begin(), args.end(), has_array)) return false;
  Ref names = run(capture, "function_names", {});
  PyObject* name = names ? PyDict_GetItemWithError(names.get(), call.callable) : nullptr;
  if (!name) {
    PyErr_Clear();
    return false;
  }
  *result = compute(capture, utf8(name), {args.begin(), args.end()}, call.nargs, call.kwnames);
  return true;
}

}  // namespace graphlift::capture
