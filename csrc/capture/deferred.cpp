// Owns: calls that show something to people: replayed in program order behind the region.
// Must not: defer a call whose result the program uses, or whose text depends on an object that may change.
#include <algorithm>
#include <optional>

#include "capture/attributes.h"
#include "capture/callables.h"
#include "capture/calls.h"
#include "cpython/hook.h"

namespace graphlift::capture {

namespace {

bool is_fixed(PyObject* object) { return is_value_constant(object) || is_identity_constant(object); }

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

// What the deferred call is given in place of an argument. Null with a break.
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

// The callable with its keyword arguments bound.
Ref with_keywords(const CallArgs& call) {
  if (!call.kwnames || PyTuple_GET_SIZE(call.kwnames) == 0) return Ref::borrow(call.callable);
  Ref functools = Ref::steal(PyImport_ImportModule("functools"));
  Ref partial = functools ? Ref::steal(PyObject_GetAttrString(functools.get(), "partial")) : Ref();
  if (!partial) return partial;
  std::vector<PyObject*> args{call.callable};
  args.insert(args.end(), call.args + call.nargs, call.args + call.nargs + PyTuple_GET_SIZE(call.kwnames));
  return Ref::steal(PyObject_Vectorcall(partial.get(), args.data(), 1, call.kwnames));
}

// Whether a logger of logging's own classes shows a record of the method's level; -1: not known. Asking fills the
// logger's cache, as the program's own call does.
int is_shown(const CallArgs& call) {
  struct Level {
    const char* method;
    int level;
  };
  static constexpr Level kLevels[] = {{"debug", 10}, {"info", 20},  {"warning", 30},
                                      {"warn", 30},  {"error", 40}, {"critical", 50}};
  PyObject* module = PyDict_GetItemString(PyImport_GetModuleDict(), "logging");
  if (!module || call.nargs == 0) return -1;
  Ref plain = Ref::steal(PyObject_GetAttrString(module, "Logger"));
  Ref root = Ref::steal(PyObject_GetAttrString(module, "RootLogger"));
  auto* type = reinterpret_cast<PyObject*>(Py_TYPE(call.args[0]));
  Ref name = Ref::steal(PyObject_GetAttrString(call.callable, "__name__"));
  if (!plain || !root || !name || (type != plain.get() && type != root.get())) {
    PyErr_Clear();
    return -1;
  }
  cpython::HookScope nobody(nullptr);
  for (const Level& row : kLevels) {
    if (PyUnicode_CompareWithASCIIString(name.get(), row.method) != 0) continue;
    Ref shown = Ref::steal(PyObject_CallMethod(call.args[0], "isEnabledFor", "i", row.level));
    if (!shown) PyErr_Clear();
    return shown ? PyObject_IsTrue(shown.get()) : -1;
  }
  return -1;
}

}  // namespace

// A record that nobody sees: the logger's own code finds that out, with what it reads guarded.
Ref log_call(Capture& capture, const CallArgs& call) {
  if (is_shown(call) != 0) return defer_call(capture, call);
  if (know_function(capture, call.callable) < 0) return Ref();
  return Ref::steal(PyObject_Vectorcall(call.callable, call.args, static_cast<size_t>(call.nargs), call.kwnames));
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
  if (!is_fixed(out.category) || !PyType_Check(out.category)) return std::nullopt;
  if (values[2]) out.level = PyLong_CheckExact(values[2]) ? PyLong_AsLong(values[2]) : 0;
  return out.level < 1 ? std::nullopt : std::optional(out);
}

bool some_warning_is_an_error() {
  Ref module = Ref::steal(PyImport_ImportModule("warnings"));
  Ref filters = module ? Ref::steal(PyObject_GetAttrString(module.get(), "filters")) : Ref();
  bool found = !filters || !PyList_Check(filters.get());
  for (Py_ssize_t i = 0; !found && i < PyList_GET_SIZE(filters.get()); ++i) {
    PyObject* filter = PyList_GET_ITEM(filters.get(), i);
    PyObject* action = PyTuple_Check(filter) && PyTuple_GET_SIZE(filter) > 0 ? PyTuple_GET_ITEM(filter, 0) : nullptr;
    found = !action || !PyUnicode_Check(action) || PyUnicode_CompareWithASCIIString(action, "error") == 0;
  }
  PyErr_Clear();
  return found;
}

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
  if (!module || some_warning_is_an_error()) return break_here(capture, "unknown_callable", describe(call.callable));
  Ref replayed = Ref::steal(PyImport_ImportModule("graphlift.replayed"));
  Ref warn = replayed ? Ref::steal(PyObject_GetAttrString(replayed.get(), "warn")) : Ref();
  Ref line = Ref::steal(PyLong_FromLong(frame->line_of(frame->executing())));
  if (!warn || !line) return Ref();
  std::vector<Ref> args;
  for (PyObject* part : {warning->message, warning->category, frame->code()->co_filename, line.get(), module})
    args.push_back(Ref::borrow(part));
  capture.deferred_calls.emplace_back(std::move(warn), std::move(args));
  return Ref::borrow(Py_None);
}

}  // namespace graphlift::capture
