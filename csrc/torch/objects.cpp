// Owns: see objects.h.
#include "torch/objects.h"

#include <ATen/Parallel.h>
#include <torch/csrc/Exceptions.h>
#include <torch/csrc/autograd/anomaly_mode.h>
#include <torch/csrc/autograd/python_variable.h>
#include <torch/csrc/utils/pybind.h>
#include <torch/csrc/utils/python_symnode.h>
#include <torch/csrc/utils/tensor_numpy.h>

#include <algorithm>
#include <cstring>
#include <string_view>
#include <unordered_set>

#include "base/once.h"
#include "guards/origin.h"
#include "torch/expectations.h"
#include "torch/functorch.h"
#include "torch/op_info.h"
#include "torch/seeding.h"
#include "torch/tracer.h"

namespace graphlift::torch_layer {

namespace {

// An attribute chain of the torch module, resolved once and kept.
PyObject* torch_object(const char* path) {
  Ref object = Ref::steal(PyImport_ImportModule("torch"));
  std::string rest = path;
  while (object && !rest.empty()) {
    const size_t dot = rest.find('.');
    object = Ref::steal(PyObject_GetAttrString(object.get(), rest.substr(0, dot).c_str()));
    rest = dot == std::string::npos ? "" : rest.substr(dot + 1);
  }
  if (!object) PyErr_Clear();
  return object.release();
}

PyTypeObject* torch_type(const char* path) { return reinterpret_cast<PyTypeObject*>(torch_object(path)); }

template <size_t N>
struct TypeName {
  constexpr TypeName(const char (&name)[N]) { std::copy_n(name, N, text); }
  char text[N];
};

// A type of torch's, found once.
template <TypeName kName>
PyTypeObject* known_type() {
  static constinit Once<PyTypeObject*> once;
  return once.get([] { return torch_type(kName.text); });
}

bool is_one_of(PyTypeObject* type, const std::vector<PyTypeObject*>& list) {
  return std::find(list.begin(), list.end(), type) != list.end();
}

// The C functions that are attributes of an object, by address; kept.
std::unordered_set<PyObject*> static_functions(const char* path) {
  std::unordered_set<PyObject*> found;
  Ref holder = Ref::steal(torch_object(path));
  Ref names = holder ? Ref::steal(PyObject_Dir(holder.get())) : Ref();
  for (Py_ssize_t i = 0; names && i < PyList_GET_SIZE(names.get()); ++i) {
    Ref value = Ref::steal(PyObject_GetAttr(holder.get(), PyList_GET_ITEM(names.get(), i)));
    if (value && PyCFunction_Check(value.get()) && !PyCFunction_GET_SELF(value.get())) found.insert(value.release());
  }
  PyErr_Clear();
  return found;
}

std::vector<int> marked_dims(PyObject* tensor, const char* attribute) {
  std::vector<int> dims;
  Ref marks = Ref::steal(PyObject_GetAttrString(tensor, attribute));
  Ref items = marks && PyAnySet_Check(marks.get()) ? Ref::steal(PySequence_List(marks.get())) : Ref();
  PyErr_Clear();
  for (Py_ssize_t i = 0; items && i < PyList_GET_SIZE(items.get()); ++i) {
    const long dim = PyLong_AsLong(PyList_GET_ITEM(items.get(), i));
    if (dim == -1 && PyErr_Occurred()) PyErr_Clear();
    dims.push_back(static_cast<int>(dim));
  }
  return dims;
}

bool has(const std::vector<int>& dims, int dim) { return std::find(dims.begin(), dims.end(), dim) != dims.end(); }

bool in_standard_library(PyObject* module_name) {
  static PyObject* names = Py_XNewRef(PySys_GetObject("stdlib_module_names"));
  const char* text = PyUnicode_AsUTF8(module_name);
  if (!names || !text) return false;
  const char* dot = std::strchr(text, '.');
  Ref top =
      Ref::steal(PyUnicode_FromStringAndSize(text, dot ? dot - text : static_cast<Py_ssize_t>(std::strlen(text))));
  const int found = top ? PySet_Contains(names, top.get()) : -1;
  if (found < 0) PyErr_Clear();
  return found == 1;
}

}  // namespace

namespace {

Ref fetch_grad(PyObject* tensor, const guards::Origin&) { return is_tensor(tensor) ? gradient_of(tensor) : Ref(); }

// A tensor that was given no attribute yet gets its empty dict, as while capturing.
Ref fetch_dict(PyObject* tensor, const guards::Origin&) {
  Ref dict = Ref::steal(PyObject_GenericGetDict(tensor, nullptr));
  if (!dict) PyErr_Clear();
  return dict;
}

}  // namespace

int64_t memory_of(PyObject* tensor) {
  return static_cast<int64_t>(reinterpret_cast<intptr_t>(THPVariable_Unpack(tensor).storage().unsafeGetStorageImpl()));
}

namespace {

class MemoryCheck final : public guards::LeafCheck {
 public:
  explicit MemoryCheck(ir::SymbolId symbol) : symbol_(symbol) {}
  bool check(PyObject* object, int64_t* symbols) const override {
    if (!is_tensor(object)) return false;
    symbols[symbol_] = memory_of(object);
    return true;
  }
  std::string text(const std::string& origin) const override { return "memory of " + origin + " is told from others"; }
  std::string explain(PyObject*) const override { return "is no tensor"; }
  int cost() const override { return 5; }

 private:
  ir::SymbolId symbol_;
};

}  // namespace

int64_t thread_count() { return at::get_num_threads(); }
int64_t anomaly_mode() { return torch::autograd::AnomalyMode::is_enabled(); }
int64_t anomaly_checks_nan() { return torch::autograd::AnomalyMode::should_check_nan(); }

std::unique_ptr<guards::LeafCheck> memory_check(ir::SymbolId symbol) { return std::make_unique<MemoryCheck>(symbol); }

Ref tensor_on_array(PyObject* array) {
  if (std::string_view(Py_TYPE(array)->tp_name) != "numpy.ndarray") return Ref();
  Ref flags = Ref::steal(PyObject_GetAttrString(array, "flags"));
  Ref writeable = flags ? Ref::steal(PyObject_GetAttrString(flags.get(), "writeable")) : Ref();
  Ref tensor;
  try {
    if (writeable.get() == Py_True)
      tensor = Ref::steal(THPVariable_Wrap(torch::utils::tensor_from_numpy(array, false)));
  } catch (const std::exception&) {  // a dtype or strides that torch has not
  }
  PyErr_Clear();
  return tensor;
}

void register_fetches() {
  register_seeding();
  register_expectations();
  guards::register_custom_fetch(kOnArray,
                                [](PyObject* array, const guards::Origin&) { return tensor_on_array(array); });
  guards::register_fetch(guards::OriginKind::TensorGrad, fetch_grad);
  guards::register_fetch(guards::OriginKind::TensorDict, fetch_dict);
}

bool is_singleton(PyObject* object) {
  static constinit Once<std::vector<PyTypeObject*>> types_once;
  const auto& types = types_once.get([] {
    return std::vector<PyTypeObject*>{torch_type("dtype"), torch_type("layout"), torch_type("memory_format"),
                                      torch_type("qscheme"), torch_type("_C._SDPBackend")};
  });
  return is_one_of(Py_TYPE(object), types);
}

bool is_device(PyObject* object) {
  PyTypeObject* type = known_type<"device">();
  return Py_IS_TYPE(object, type);
}

bool is_torch_size(PyObject* object) {
  PyTypeObject* type = known_type<"Size">();
  return Py_IS_TYPE(object, type);
}

bool is_parameter(PyObject* tensor) {
  PyTypeObject* type = known_type<"nn.Parameter">();
  return PyType_IsSubtype(Py_TYPE(tensor), type);
}

bool is_torch_owned(PyTypeObject* type) {
  static constinit Once<std::vector<PyTypeObject*>> types_once;
  const auto& types = types_once.get([] {
    return std::vector<PyTypeObject*>{torch_type("Tensor"),
                                      torch_type("nn.Parameter"),
                                      torch_type("nn.Buffer"),
                                      torch_type("_C.TensorBase"),
                                      torch_type("_C._TensorMeta"),
                                      torch_type("nn.parameter._ParameterMeta"),
                                      torch_type("nn.parameter._BufferMeta"),
                                      torch_type("SymInt"),
                                      torch_type("SymFloat"),
                                      torch_type("SymBool")};
  });
  return is_one_of(type, types);
}

bool is_trusted_function(PyObject* function) {
  if (!PyFunction_Check(function)) return false;
  PyObject* globals = PyFunction_GET_GLOBALS(function);
  PyObject* name = PyDict_Check(globals) ? PyDict_GetItemString(globals, "__name__") : nullptr;
  if (!name || !PyUnicode_Check(name)) return false;
  const char* text = PyUnicode_AsUTF8(name);
  if (!text) {
    PyErr_Clear();
    return false;
  }
  const std::string_view module = text;
  for (std::string_view package : {"torch", "graphlift"})
    if (module == package || (module.substr(0, package.size()) == package && module[package.size()] == '.'))
      return true;
  return in_standard_library(name);
}

bool is_tensor_function(PyObject* callable) {
  static constinit Once<std::vector<PyObject*>> holders_once;
  const auto& holders = holders_once.get([] {
    return std::vector<PyObject*>{torch_object("_C._VariableFunctions"),
                                  torch_object("_C._nn"),
                                  torch_object("_C._fft"),
                                  torch_object("_C._linalg"),
                                  torch_object("_C._special"),
                                  torch_object("_C._VariableFunctionsClass")};
  });
  PyTypeObject* base = known_type<"_C.TensorBase">();
  static constinit Once<std::unordered_set<PyObject*>> functions_once;
  const auto& functions = functions_once.get([] { return static_functions("_C._VariableFunctions"); });
  if (functions.count(callable)) return true;
  if (PyCFunction_Check(callable)) {
    PyObject* self = PyCFunction_GET_SELF(callable);
    return self &&
           (std::find(holders.begin(), holders.end(), self) != holders.end() ||
            std::find(holders.begin(), holders.end(), reinterpret_cast<PyObject*>(Py_TYPE(self))) != holders.end());
  }
  const bool descriptor = Py_IS_TYPE(callable, &PyMethodDescr_Type) || Py_IS_TYPE(callable, &PyWrapperDescr_Type);
  return descriptor && PyDescr_TYPE(callable) == base;
}

bool is_operator_object(PyObject* object) {
  static constinit Once<std::vector<PyTypeObject*>> types_once;
  const auto& types = types_once.get([] {
    return std::vector<PyTypeObject*>{torch_type("_ops.OpOverload"), torch_type("_ops.OpOverloadPacket"),
                                      torch_type("_ops.TorchBindOpOverload")};
  });
  return is_one_of(Py_TYPE(object), types);
}

namespace {

std::string text_attribute(PyObject* object, const char* name) {
  Ref value = Ref::steal(PyObject_GetAttrString(object, name));
  const char* text = value && PyUnicode_Check(value.get()) ? PyUnicode_AsUTF8(value.get()) : nullptr;
  PyErr_Clear();
  return text ? text : "";
}

bool is_unknown_composition(const std::string& op, const std::string& overload) {
  const auto found = c10::Dispatcher::singleton().findOp({op, overload});
  return found && found->hasKernelForDispatchKey(c10::DispatchKey::CompositeImplicitAutograd) &&
         !found->hasKernelForDispatchKey(c10::DispatchKey::Meta);
}

}  // namespace

std::string unknown_composition(PyObject* op) {
  // A packet would look for an attribute that it has not among its overloads.
  const bool one = std::string_view(Py_TYPE(op)->tp_name) == "OpOverload";
  Ref schema = one ? Ref::steal(PyObject_GetAttrString(op, "_schema")) : Ref();
  const std::string name = schema ? text_attribute(schema.get(), "name") : text_attribute(op, "_qualified_op_name");
  if (is_of_torch(name)) return "";
  if (schema) return is_unknown_composition(name, text_attribute(schema.get(), "overload_name")) ? name : "";
  Ref overloads = Ref::steal(PyObject_GetAttrString(op, "_overload_names"));
  PyErr_Clear();
  for (Py_ssize_t i = 0; overloads && PyList_Check(overloads.get()) && i < PyList_GET_SIZE(overloads.get()); ++i) {
    const char* overload = PyUnicode_AsUTF8(PyList_GET_ITEM(overloads.get(), i));
    if (overload && is_unknown_composition(name, overload)) return name;
  }
  return "";
}

bool is_known_base(PyTypeObject* type) {
  PyTypeObject* function = known_type<"_C._FunctionBase">();
  return type == function;
}

bool sizes_of(PyObject* tensor, std::vector<int64_t>* sizes) {
  const at::Tensor& real = THPVariable_Unpack(tensor);
  if (real.is_nested() || real.unsafeGetTensorImpl()->has_symbolic_sizes_strides()) return false;
  sizes->assign(real.sizes().begin(), real.sizes().end());
  return true;
}

bool can_be_output(PyObject* tensor) {
  const at::Tensor& real = THPVariable_Unpack(tensor);
  return !is_functorch_wrapper(real) && !real.is_conj() && !real.is_neg();
}

Ref specialize(PyObject* symbolic) {
  try {
    const py::handle handle(symbolic);
    if (torch::is_symint(handle))
      return Ref::steal(PyLong_FromLongLong(handle.cast<c10::SymInt>().guard_int(__FILE__, __LINE__)));
    if (torch::is_symbool(handle))
      return Ref::borrow(handle.cast<c10::SymBool>().guard_bool(__FILE__, __LINE__) ? Py_True : Py_False);
    if (torch::is_symfloat(handle))
      return Ref::steal(PyFloat_FromDouble(handle.cast<c10::SymFloat>().guard_float(__FILE__, __LINE__)));
  } catch (python_error& error) {
    error.restore();
    return Ref();
  } catch (py::error_already_set& error) {
    error.restore();
    return Ref();
  } catch (const std::exception& error) {
    PyErr_SetString(PyExc_RuntimeError, error.what());
    return Ref();
  }
  return Ref::borrow(symbolic);
}

bool Marks::is_dynamic(int dim) const { return has(dynamic, dim); }
bool Marks::is_static(int dim) const { return has(fixed, dim); }

Marks dynamic_marks(PyObject* tensor) {
  Marks marks{marked_dims(tensor, "_dynamo_dynamic_indices"), marked_dims(tensor, "_dynamo_static_indices")};
  for (int dim : marked_dims(tensor, "_dynamo_weak_dynamic_indices")) marks.dynamic.push_back(dim);
  return marks;
}

}  // namespace graphlift::torch_layer
