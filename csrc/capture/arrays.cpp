// Owns: see arrays.h.
#include "capture/arrays.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <string_view>

#include "capture/attributes.h"
#include "capture/calls.h"
#include "capture/computed_arrays.h"
#include "capture/containers.h"
#include "capture/recipe_parts.h"
#include "cpython/hook.h"
#include "cpython/imported.h"
#include "guards/constant.h"

namespace graphlift::capture {

using guards::GuardKind;
using guards::OriginId;
using guards::OriginKind;

namespace {

// A number of numpy's is its value behind the object's head (numpy/arrayscalars.h).
struct NumberRow {
  std::string_view type;
  size_t bytes;
};

constexpr NumberRow kNumbers[] = {
    {"numpy.float64", 8},   {"numpy.float32", 4},     {"numpy.float16", 2},   {"numpy.int64", 8},  {"numpy.int32", 4},
    {"numpy.int16", 2},     {"numpy.int8", 1},        {"numpy.uint64", 8},    {"numpy.uint32", 4}, {"numpy.uint16", 2},
    {"numpy.uint8", 1},     {"numpy.longlong", 8},    {"numpy.ulonglong", 8}, {"numpy.bool_", 1},  {"numpy.bool", 1},
    {"numpy.complex64", 8}, {"numpy.complex128", 16},
};

const NumberRow* number_row(PyTypeObject* type) {
  const std::string_view name = type->tp_name;
  if (!name.starts_with("numpy.") || is_python_class(type)) return nullptr;
  const auto* row = std::find_if(std::begin(kNumbers), std::end(kNumbers), [&](auto& r) { return r.type == name; });
  return row == std::end(kNumbers) ? nullptr : row;
}

const void* bits(PyObject* number) { return number + 1; }

class SameNumber final : public guards::LeafCheck {
 public:
  explicit SameNumber(PyObject* number) : number_(Ref::borrow(number)), size_(number_row(Py_TYPE(number))->bytes) {}
  bool check(PyObject* object, int64_t*) const override {
    return Py_TYPE(object) == Py_TYPE(number_.get()) && std::memcmp(bits(object), bits(number_.get()), size_) == 0;
  }
  std::string text(const std::string& origin) const override {
    return origin + " == " + guards::repr_text(number_.get());
  }
  std::string explain(PyObject* object) const override {
    return "is " + guards::repr_text(object) + ", not " + guards::repr_text(number_.get());
  }
  int cost() const override { return 1; }

 private:
  Ref number_;
  size_t size_;
};

bool is_one(PyObject* flag) { return flag && PyLong_CheckExact(flag) && PyLong_AsLong(flag) == 1; }

// Getters of arrays in C, which the origins are named after.
constexpr const char* kFetched[] = {"shape", "dtype", "T"};

Ref fetch(PyObject* array, const guards::Origin& origin) {
  Ref value = is_array(array) ? Ref::steal(PyObject_GetAttr(array, origin.key.get())) : Ref();
  if (!value) PyErr_Clear();
  return value;
}

}  // namespace

void register_array_fetches() {
  for (const char* name : kFetched) guards::register_custom_fetch(name, fetch);
}

bool is_array(PyObject* object) {
  return std::string_view(Py_TYPE(object)->tp_name) == "numpy.ndarray" && !is_python_class(Py_TYPE(object));
}

bool is_array_kind(PyObject* object) {
  PyTypeObject* type = Py_TYPE(object);
  if (!std::string_view(type->tp_name).starts_with("numpy.dtype") || PyType_Check(object) || is_python_class(type))
    return false;
  const SavedError error;
  Ref builtin = Ref::steal(PyObject_GetAttrString(object, "isbuiltin"));
  Ref native = Ref::steal(PyObject_GetAttrString(object, "isnative"));
  Ref number = Ref::steal(PyObject_GetAttrString(object, "type"));
  PyErr_Clear();
  return is_one(builtin.get()) && native.get() == Py_True && number && PyType_Check(number.get()) &&
         is_array_number_type(reinterpret_cast<PyTypeObject*>(number.get()));
}

bool is_array_number_type(PyTypeObject* type) { return number_row(type); }
bool is_array_number(PyObject* object) { return number_row(Py_TYPE(object)); }
std::unique_ptr<guards::LeafCheck> array_number_check(PyObject* number) { return std::make_unique<SameNumber>(number); }

int64_t array_number_bits(PyObject* number) {
  int64_t halves[2] = {};  // a complex number has two
  std::memcpy(halves, bits(number), number_row(Py_TYPE(number))->bytes);
  return halves[0] ^ (halves[1] << 1);
}

namespace {

bool is_named(PyObject* name, std::string_view text) {
  const char* words = PyUnicode_AsUTF8(name);
  return words && text == words;
}

OriginId part_of(Capture& capture, const Outside* array, const char* name) {
  Ref key = Ref::steal(PyUnicode_InternFromString(name));
  return capture.origins().child(array->origin, OriginKind::Custom, key.get());
}

// Its sizes as ints that may vary.
Ref shape_of(Capture& capture, const Outside* array) {
  const OriginId origin = part_of(capture, array, "shape");
  Ref shape = Ref::steal(PyObject_GetAttrString(array->object.get(), "shape"));
  if (!shape) return shape;
  const Py_ssize_t dims = PyTuple_GET_SIZE(shape.get());
  capture.guards.add(origin, GuardKind::Length, nullptr, dims);
  Ref seen = Ref::steal(PyTuple_New(dims));
  for (Py_ssize_t i = 0; seen && i < dims; ++i) {
    const OriginId of_size = capture.origins().child(origin, OriginKind::TupleItem, nullptr, static_cast<int>(i));
    Ref size = capture.admit(PyTuple_GET_ITEM(shape.get(), i), of_size);
    if (!size) return size;
    PyTuple_SET_ITEM(seen.get(), i, size.release());
  }
  return seen;
}

Ref size_of(Capture& capture, PyObject* shape) {
  ir::Sym size(1);
  bool varies = false;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(shape); ++i) {
    PyObject* item = PyTuple_GET_ITEM(shape, i);
    const std::optional<ir::Sym> factor =
        PyLong_CheckExact(item) ? std::optional(ir::Sym(PyLong_AsLongLong(item))) : capture.tracer->sym_of(item);
    if (!factor) return break_here(capture, "unsupported_attribute", "numpy.ndarray.size");
    varies |= !PyLong_CheckExact(item);
    size = size * *factor;
  }
  return varies && !size.is_constant() ? capture.tracer->sym_int(size)
                                       : Ref::steal(PyLong_FromLongLong(size.constant()));
}

Ref kind_of(Capture& capture, const Outside* array) {
  Ref kind = Ref::steal(PyObject_GetAttrString(array->object.get(), "dtype"));
  if (!kind) return kind;
  if (!is_array_kind(kind.get())) return break_here(capture, "unsupported_attribute", "numpy.ndarray.dtype");
  capture.guards.add(part_of(capture, array, "dtype"), GuardKind::Is, kind.get());
  return kind;
}

}  // namespace

Ref array_get_attr(Capture& capture, PyObject* array, PyObject* name) {
  const Outside* outside = capture.objects.find(array);
  if (Ref result; computed_array_attr(capture, array, name, &result)) return result;
  if (!outside || outside->origin == guards::kNoOrigin) return generic_get_attr(capture, array, name, nullptr);
  if (is_named(name, "dtype")) return kind_of(capture, outside);
  if (is_named(name, "T")) {
    Ref turned = Ref::steal(PyObject_GetAttr(array, name));
    return turned ? capture.admit(turned.get(), part_of(capture, outside, "T")) : turned;
  }
  const bool shape = is_named(name, "shape"), size = is_named(name, "size");
  if (!shape && !size && !is_named(name, "ndim")) return generic_get_attr(capture, array, name, nullptr);
  Ref seen = shape_of(capture, outside);
  if (!seen || shape) return seen;
  return size ? size_of(capture, seen.get()) : Ref::steal(PyLong_FromSsize_t(PyTuple_GET_SIZE(seen.get())));
}

// Some of them numpy makes in Python of its own.
Ref kind_get_attr(Capture&, PyObject* kind, PyObject* name) {
  const cpython::HookScope nobody(nullptr);
  return Ref::steal(PyObject_GetAttr(kind, name));
}

Ref array_length(Capture& capture, PyObject* array) {
  const Outside* outside = capture.objects.find(array);
  if (!outside && !computed_array(capture, array))
    return break_here(capture, "unsupported_item", "an array that was made here");
  Ref name = outside ? Ref() : Ref::steal(PyUnicode_FromString("shape"));
  Ref shape = outside ? shape_of(capture, outside) : array_get_attr(capture, array, name.get());
  if (shape && PyTuple_GET_SIZE(shape.get()) == 0) PyErr_SetString(PyExc_TypeError, "len() of unsized object");
  return !shape || PyErr_Occurred() ? Ref() : Ref::borrow(PyTuple_GET_ITEM(shape.get(), 0));
}

namespace {

bool is_number(PyObject* object) {
  return PyLong_CheckExact(object) || PyFloat_CheckExact(object) || PyBool_Check(object) ||
         PyComplex_CheckExact(object) || is_array_number(object);
}

// What numpy makes a kind of without a look at attributes.
bool names_kind(PyObject* object) {
  if (is_array_kind(object) || PyUnicode_CheckExact(object) || object == Py_None) return true;
  if (!PyType_Check(object)) return false;
  auto* type = reinterpret_cast<PyTypeObject*>(object);
  return is_array_number_type(type) || type == &PyLong_Type || type == &PyFloat_Type || type == &PyBool_Type ||
         type == &PyComplex_Type;
}

// What numpy tells of floating-point errors depends on its settings, and is told when it happens.
Ref without_errors(Capture& capture, const std::string& who, const std::function<Ref()>& body) {
  Ref state, result;
  {
    const cpython::HookScope nobody(nullptr);
    Ref type = cpython::imported("numpy", "errstate");
    Ref none = Ref::steal(PyTuple_New(0)), how = Ref::steal(Py_BuildValue("{ss}", "all", "raise"));
    state = type && none && how ? Ref::steal(PyObject_Call(type.get(), none.get(), how.get())) : Ref();
    if (!state || !Ref::steal(PyObject_CallMethod(state.get(), "__enter__", nullptr))) return Ref();
  }
  result = body();
  {
    const SavedError error;
    const cpython::HookScope nobody(nullptr);
    Ref left = Ref::steal(PyObject_CallMethod(state.get(), "__exit__", "OOO", Py_None, Py_None, Py_None));
    PyErr_Clear();
  }
  if (result || !PyErr_ExceptionMatches(PyExc_FloatingPointError)) return capture.pending ? Ref() : std::move(result);
  PyErr_Clear();
  return break_here(capture, "unsupported_operator", who + " with a floating-point error");
}

}  // namespace

Ref with_array_numbers(Capture& capture, std::initializer_list<PyObject*> operands, const std::function<Ref()>& body) {
  bool ours = false, tensors = false, numbers = true, kinds = true;
  for (PyObject* operand : operands) {
    ours |= is_array_number(operand) || is_array_kind(operand);
    tensors |= torch_layer::is_stand_in(operand);
    numbers &= is_number(operand) || torch_layer::is_stand_in(operand);
    kinds &= names_kind(operand);
  }
  if (!ours) return body();
  if (!numbers && !kinds) return break_here(capture, "unsupported_operator", "a number of numpy's and another object");
  return tensors || kinds ? body() : without_errors(capture, "numbers of numpy's", body);
}

namespace {

// Functions that only compute where they are given numbers, and on tuples and lists of numbers.
constexpr std::string_view kOfNumbers[] = {
    "sqrt",    "exp",           "exp2",         "expm1",       "log",       "log2",      "log10",    "log1p",
    "sin",     "cos",           "tan",          "arcsin",      "arccos",    "arctan",    "arctan2",  "sinh",
    "cosh",    "tanh",          "floor",        "ceil",        "trunc",     "rint",      "absolute", "fabs",
    "sign",    "square",        "negative",     "add",         "subtract",  "multiply",  "divide",   "true_divide",
    "power",   "remainder",     "floor_divide", "maximum",     "minimum",   "fmax",      "fmin",     "hypot",
    "isnan",   "isinf",         "isfinite",     "logical_not", "equal",     "not_equal", "less",     "less_equal",
    "greater", "greater_equal", "radians",      "degrees",     "reciprocal"};
constexpr std::string_view kOfSequences[] = {"prod", "sum", "mean", "max", "min", "amax", "amin", "round"};
constexpr std::string_view kMethods[] = {
    "item",     "tolist",   "is_integer", "conjugate", "__round__",  "__float__", "__int__", "__index__",
    "__bool__", "__hash__", "__str__",    "__repr__",  "__format__", "__abs__",   "__neg__", "__complex__"};

template <size_t N>
bool is_listed(const std::string_view (&names)[N], PyObject* name) {
  return std::any_of(std::begin(names), std::end(names), [&](std::string_view text) { return is_named(name, text); });
}

// The very function that numpy has under its name.
template <size_t N>
bool is_function(PyObject* callable, const std::string_view (&names)[N]) {
  Ref name = Ref::steal(PyObject_GetAttrString(callable, "__name__"));
  PyObject* module = PyDict_GetItemString(PyImport_GetModuleDict(), "numpy");
  PyErr_Clear();
  return name && PyUnicode_Check(name.get()) && module && PyModule_Check(module) && is_listed(names, name.get()) &&
         PyDict_GetItem(PyModule_GetDict(module), name.get()) == callable;
}

bool is_method(PyObject* callable) {
  if (!Py_IS_TYPE(callable, &PyMethodDescr_Type) && !Py_IS_TYPE(callable, &PyWrapperDescr_Type)) return false;
  PyTypeObject* of = PyDescr_TYPE(callable);
  const bool numbers = is_array_number_type(of) || std::string_view(of->tp_name) == "numpy.generic";
  return numbers && is_listed(kMethods, PyDescr_NAME(callable));
}

bool holds_numbers(PyObject* object) {
  if (!PyTuple_CheckExact(object) && !PyList_CheckExact(object)) return false;
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(object); ++i)
    if (!is_number(PySequence_Fast_GET_ITEM(object, i))) return false;
  return true;
}

// Arguments as numpy may see them: numbers, and sequences of numbers where `sequences`.
Ref call_numpy(Capture& capture, const CallArgs& call, bool sequences) {
  const Py_ssize_t total = call.nargs + (call.kwnames ? PyTuple_GET_SIZE(call.kwnames) : 0);
  std::vector<Ref> hold;
  std::vector<PyObject*> args;
  for (Py_ssize_t i = 0; i < total; ++i) {
    Ref arg = for_plain_c_code(capture, call.args[i]);
    arg = arg && torch_layer::is_sym_scalar(arg.get()) ? capture.concrete(arg.get()) : arg;
    if (!arg) return arg;
    const bool known = is_number(arg.get()) || (sequences && holds_numbers(arg.get())) || is_value_constant(arg.get());
    if (!known || (i >= call.nargs && !is_value_constant(arg.get())))
      return break_here(capture, "unknown_callable", describe(call.callable));
    args.push_back(arg.get());
    hold.push_back(std::move(arg));
  }
  const cpython::HookScope nobody(nullptr);
  Ref result = without_errors(capture, describe(call.callable), [&] {
    return Ref::steal(PyObject_Vectorcall(call.callable, args.data(), static_cast<size_t>(call.nargs), call.kwnames));
  });
  if (!result || is_number(result.get()) || is_value_constant(result.get())) return result;
  return break_here(capture, "unknown_callable", describe(call.callable) + ", which makes an array");
}

}  // namespace

Ref make_array_number(Capture& capture, const CallArgs& call) { return call_numpy(capture, call, false); }

bool call_on_array_numbers(Capture& capture, const CallArgs& call, Ref* result) {
  const std::string_view type = Py_TYPE(call.callable)->tp_name;
  const bool of_numbers = is_method(call.callable) || (type == "numpy.ufunc" && is_function(call.callable, kOfNumbers));
  const bool of_sequences = type == "numpy._ArrayFunctionDispatcher" && is_function(call.callable, kOfSequences);
  if (!of_numbers && !of_sequences) return false;
  *result = call_numpy(capture, call, of_sequences);
  return true;
}

}  // namespace graphlift::capture
