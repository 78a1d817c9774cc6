// Owns: calls that show something to people: replayed in program order behind the region.
// Must not: defer a call whose result the program uses, or whose text depends on an object that may change.
#include "capture/deferred.h"

#include <algorithm>
#include <optional>

#include "capture/arrays.h"
#include "capture/callables.h"
#include "capture/calls.h"
#include "cpython/hook.h"
#include "cpython/imported.h"

namespace graphlift::capture {

size_t acts_so_far(const Capture& capture) {
  return capture.deferred_calls.size() + capture.objects.changes() + capture.context.set_count();
}

bool is_fixed(PyObject* object) {
  return is_value_constant(object) || is_identity_constant(object) || is_array_number(object);
}

namespace {

// Containers of fixed objects, whose text is that of now.
bool is_fixed_container(PyObject* object) {
  if (PyTuple_CheckExact(object) || PyList_CheckExact(object)) {
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(object); ++i)
      if (PyObject* item = PySequence_Fast_GET_ITEM(object, i); !is_fixed(item) && !is_fixed_container(item))
        return false;
    return true;
  }
  if (!PyDict_CheckExact(object)) return false;
  PyObject *key, *value;
  for (Py_ssize_t at = 0; PyDict_Next(object, &at, &key, &value);)
    if (!is_fixed(key) || (!is_fixed(value) && !is_fixed_container(value))) return false;
  return true;
}

bool is_print(PyObject* callable) { return callable == PyDict_GetItemString(PyEval_GetBuiltins(), "print"); }

}  // namespace

Ref shown(Capture& capture, const CallArgs& call, Py_ssize_t index) {
  PyObject* arg = call.args[index];
  if (is_fixed(arg) || torch_layer::is_torch_size(arg) || torch_layer::is_sym_scalar(arg)) return Ref::borrow(arg);
  if (index == 0 && capture.is_outside(arg) && !PyCFunction_Check(call.callable)) return Ref::borrow(arg);  // receiver
  if (torch_layer::is_stand_in(arg)) {
    Ref value = capture.tracer->frozen(arg);
    return value || PyErr_Occurred() ? std::move(value) : break_here(capture, "tensor_text", describe(call.callable));
  }
  if (is_print(call.callable) && !capture.is_outside(arg) && is_fixed_container(arg))
    return Ref::steal(PyObject_Str(arg));
  return break_here(capture, "unknown_callable", describe(call.callable));
}

namespace {

// The callable with its keyword arguments bound.
Ref with_keywords(const CallArgs& call) {
  if (!call.kwnames || PyTuple_GET_SIZE(call.kwnames) == 0) return Ref::borrow(call.callable);
  Ref partial = cpython::imported("functools", "partial");
  if (!partial) return partial;
  std::vector<PyObject*> args{call.callable};
  args.insert(args.end(), call.args + call.nargs, call.args + call.nargs + PyTuple_GET_SIZE(call.kwnames));
  return Ref::steal(PyObject_Vectorcall(partial.get(), args.data(), 1, call.kwnames));
}

// No instance attribute of the object hides its class's `write`.
bool writes_as_its_class(PyObject* out) {
  PyObject** dict = _PyObject_GetDictPtr(out);
  return !dict || !*dict || !PyDict_GetItemString(*dict, "write");
}

// The text goes to an object of the same type as while capturing.
class StdoutTypeIs final : public guards::LeafCheck {
 public:
  StdoutTypeIs() : type_(Ref::borrow(reinterpret_cast<PyObject*>(now()))) {}
  bool check(PyObject*, int64_t*) const override {
    PyObject* out = PySys_GetObject("stdout");
    return reinterpret_cast<PyObject*>(now()) == type_.get() && (!out || writes_as_its_class(out));
  }
  std::string text(const std::string&) const override {
    return std::string("type(sys.stdout) is ") + name(type_.get());
  }
  std::string explain(PyObject*) const override { return std::string("sys.stdout is a ") + now()->tp_name; }
  static PyTypeObject* now() {
    PyObject* out = PySys_GetObject("stdout");
    return Py_TYPE(out ? out : Py_None);
  }

 private:
  static const char* name(PyObject* type) { return reinterpret_cast<PyTypeObject*>(type)->tp_name; }
  Ref type_;
};

bool is_pythons_own(PyObject* method) {
  return Py_IS_TYPE(method, &PyMethodDescr_Type) ||
         (PyFunction_Check(method) && torch_layer::is_trusted_function(method));
}

// Whether the object that prints write to is of Python's own, so that the program can't tell when it was written to
// without leaving the region.
bool prints_plainly(Capture& capture) {
  PyTypeObject* type = StdoutTypeIs::now();
  Ref name = Ref::steal(PyUnicode_InternFromString("write"));
  PyObject* write = name ? _PyType_Lookup(type, name.get()) : nullptr;
  PyObject* out = PySys_GetObject("stdout");
  if (out && (!write || !is_pythons_own(write) || !writes_as_its_class(out))) return false;
  capture.guards.add_global(std::make_unique<StdoutTypeIs>());
  return true;
}

}  // namespace

Ref print_call(Capture& capture, const CallArgs& call) {
  if (!prints_plainly(capture)) return break_here(capture, "unknown_callable", describe(call.callable));
  return defer_call(capture, call);
}

Ref defer_call(Capture& capture, const CallArgs& call) {
  const Py_ssize_t total = call.nargs + (call.kwnames ? PyTuple_GET_SIZE(call.kwnames) : 0);
  for (Py_ssize_t i = call.nargs; i < total; ++i)
    if (!is_fixed(call.args[i])) return break_here(capture, "unknown_callable", describe(call.callable));
  std::vector<Ref> args;
  for (Py_ssize_t i = 0; i < call.nargs; ++i) {
    Ref arg = shown(capture, call, i);
    if (!arg) return arg;
    args.push_back(std::move(arg));
  }
  Ref callable = with_keywords(call);
  if (!callable) return callable;
  capture.deferred_calls.emplace_back(std::move(callable), std::move(args));
  return Ref::borrow(Py_None);
}

namespace {

struct Warning {
  PyObject* message = nullptr;
  PyObject* category = PyExc_UserWarning;
  long level = 1;
};

// Making one, and its text, run no Python code.
bool is_plain_category(PyObject* category) {
  if (!PyExceptionClass_Check(category)) return false;
  const auto *type = reinterpret_cast<PyTypeObject*>(category), *plain = reinterpret_cast<PyTypeObject*>(PyExc_Warning);
  return type->tp_new == plain->tp_new && type->tp_init == plain->tp_init && type->tp_str == plain->tp_str;
}

// Null: an argument that is not deferred.
std::optional<Warning> parse_warning(const CallArgs& call) {
  static constexpr const char* kNames[] = {"message", "category", "stacklevel", "source"};
  PyObject* values[4] = {};
  if (call.nargs > 4) return std::nullopt;
  std::copy_n(call.args, call.nargs, values);
  const Py_ssize_t named = call.kwnames ? PyTuple_GET_SIZE(call.kwnames) : 0;
  for (Py_ssize_t i = 0; i < named; ++i) {
    const auto name = std::find_if(std::begin(kNames), std::end(kNames), [&](const char* text) {
      return PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(call.kwnames, i), text) == 0;
    });
    if (name == std::end(kNames)) return std::nullopt;
    values[name - kNames] = call.args[call.nargs + i];
  }
  Warning out;
  out.message = values[0];
  if (!out.message || !PyUnicode_CheckExact(out.message) || values[3]) return std::nullopt;
  if (values[1] && values[1] != Py_None) out.category = values[1];
  if (!is_fixed(out.category) || !is_plain_category(out.category)) return std::nullopt;
  if (values[2]) out.level = PyLong_CheckExact(values[2]) ? PyLong_AsLong(values[2]) : 0;
  return out.level < 1 ? std::nullopt : std::optional(out);
}

// No filter makes errors of warnings, and what shows them is Python's own or stays what it is.
class WarningsAreShown final : public guards::LeafCheck {
 public:
  explicit WarningsAreShown(PyObject* module)
      : dict_(Ref::borrow(PyModule_GetDict(module))), show_(Ref::borrow(item("showwarning"))) {}
  bool holds_now() const {
    const bool own = show_ && (!PyFunction_Check(show_.get()) || torch_layer::is_trusted_function(show_.get()));
    return own && check(nullptr, nullptr);
  }
  bool check(PyObject*, int64_t*) const override {
    PyObject* filters = item("filters");
    if (!filters || !PyList_Check(filters) || item("showwarning") != show_.get()) return false;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(filters); ++i) {
      PyObject* row = PyList_GET_ITEM(filters, i);
      PyObject* action = PyTuple_Check(row) && PyTuple_GET_SIZE(row) > 0 ? PyTuple_GET_ITEM(row, 0) : nullptr;
      if (!action || !PyUnicode_Check(action) || PyUnicode_CompareWithASCIIString(action, "error") == 0) return false;
    }
    return true;
  }
  std::string text(const std::string&) const override { return "warnings are shown"; }
  std::string explain(PyObject*) const override {
    return "a filter makes errors of warnings, or warnings.showwarning is another";
  }

 private:
  PyObject* item(const char* name) const { return PyDict_GetItemString(dict_.get(), name); }
  Ref dict_, show_;
};

// The name of the module in whose namespace the frame runs. Null: none in sys.modules.
PyObject* module_of(const cpython::Frame& frame) {
  PyObject* name = PyDict_GetItemString(frame.globals(), "__name__");
  PyObject* module = name ? PyDict_GetItem(PyImport_GetModuleDict(), name) : nullptr;
  const bool found = module && PyModule_Check(module) && PyModule_GetDict(module) == frame.globals();
  return found && PyUnicode_CheckExact(name) ? name : nullptr;
}

}  // namespace

Ref warn_call(Capture& capture, const CallArgs& call) {
  cpython::HookScope nobody(nullptr);
  const std::optional<Warning> warning = parse_warning(call);
  const auto depth = static_cast<long>(capture.frames.size());
  const bool inside = warning && warning->level <= depth;
  const cpython::Frame* frame = inside ? &capture.frames[static_cast<size_t>(depth - warning->level)] : nullptr;
  PyObject* module = frame ? module_of(*frame) : nullptr;
  Ref warnings = cpython::imported("warnings", "");
  if (!warnings) return warnings;
  auto check = std::make_unique<WarningsAreShown>(warnings.get());
  if (!module || !check->holds_now()) return break_here(capture, "unknown_callable", describe(call.callable));
  capture.guards.add_global(std::move(check));
  Ref warn = cpython::imported("graphlift.replayed", "warn");
  Ref line = Ref::steal(PyLong_FromLong(frame->line_of(frame->executing())));
  if (!warn || !line) return Ref();
  std::vector<Ref> args;
  for (PyObject* part : {warning->message, warning->category, frame->code()->co_filename, line.get(), module})
    args.push_back(Ref::borrow(part));
  capture.deferred_calls.emplace_back(std::move(warn), std::move(args));
  return Ref::borrow(Py_None);
}

}  // namespace graphlift::capture
