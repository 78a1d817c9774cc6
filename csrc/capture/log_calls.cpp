// Owns: methods of loggers: records are made and handled behind the region, told of the line that logs.
// Must not: defer where a handler, or the logger, is of a class of the program's own.
#include <algorithm>
#include <optional>
#include <string_view>

#include "capture/attributes.h"
#include "capture/calls.h"
#include "capture/containers.h"
#include "capture/deferred.h"
#include "capture/items.h"
#include "cpython/hook.h"
#include "cpython/imported.h"

namespace graphlift::capture {

namespace {

struct LogMethod {
  std::string_view name;
  long level;  // 0: the first argument
};
constexpr LogMethod kLogMethods[] = {{"debug", 10}, {"info", 20},     {"warning", 30},
                                     {"error", 40}, {"critical", 50}, {"log", 0}};

struct Record {
  long level = 0;
  Py_ssize_t first = 1;  // index of the message
  long stack_level = 1;
};

PyObject* logging_module() { return PyDict_GetItemString(PyImport_GetModuleDict(), "logging"); }

// Borrowed; null: logging is not loaded, or has no such name.
PyObject* of_logging(const char* name) {
  PyObject* module = logging_module();
  return module ? PyDict_GetItemString(PyModule_GetDict(module), name) : nullptr;
}

bool is_plain_logger(PyObject* object) {
  auto* type = reinterpret_cast<PyObject*>(Py_TYPE(object));
  return type == of_logging("Logger") || type == of_logging("RootLogger");
}

// A logger, handler or formatter, also of a derived class.
bool is_of_logging(PyObject* object) {
  for (const char* name : {"Filterer", "Formatter"}) {
    PyObject* base = of_logging(name);
    if (base && PyType_Check(base) && PyObject_TypeCheck(object, reinterpret_cast<PyTypeObject*>(base))) return true;
  }
  return false;
}

// None and False say what is the default; `stacklevel` says who logs. Anything else is not deferred.
bool parse_keywords(const CallArgs& call, Record* out) {
  const Py_ssize_t named = call.kwnames ? PyTuple_GET_SIZE(call.kwnames) : 0;
  for (Py_ssize_t i = 0; i < named; ++i) {
    PyObject* value = call.args[call.nargs + i];
    if (PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(call.kwnames, i), "stacklevel") == 0) {
      out->stack_level = PyLong_CheckExact(value) ? PyLong_AsLong(value) : 0;
      if (out->stack_level < 1) return false;
    } else if (value != Py_None && value != Py_False) {
      return false;
    }
  }
  return true;
}

std::optional<Record> parse_record(const CallArgs& call) {
  Ref name = Ref::steal(PyObject_GetAttrString(call.callable, "__name__"));
  const char* text = name && PyUnicode_Check(name.get()) ? PyUnicode_AsUTF8(name.get()) : nullptr;
  if (!text || call.nargs < 2 || !is_plain_logger(call.args[0])) return std::nullopt;
  Record out;
  for (const LogMethod& row : kLogMethods)
    if (row.name == text) out.level = row.level;
  if (out.level == 0) {
    if (call.nargs < 3 || !PyLong_CheckExact(call.args[1])) return std::nullopt;
    out.level = PyLong_AsLong(call.args[1]);
    out.first = 2;
  }
  return parse_keywords(call, &out) ? std::optional(out) : std::nullopt;
}

// Whether the logger shows a record of the level now. Asking fills its cache, as the program's own call does.
int is_shown(PyObject* logger, long level) {
  cpython::HookScope nobody(nullptr);
  Ref shown = Ref::steal(PyObject_CallMethod(logger, "isEnabledFor", "l", level));
  return shown ? PyObject_IsTrue(shown.get()) : -1;
}

PyObject* method_of(PyObject* object, const char* name) {
  Ref interned = Ref::steal(PyUnicode_InternFromString(name));
  return interned ? _PyType_Lookup(Py_TYPE(object), interned.get()) : nullptr;
}

bool is_own_handler(PyObject* handler) {
  for (const char* part : {"emit", "handle", "format", "filter"}) {
    PyObject* method = method_of(handler, part);
    if (!method || !torch_layer::is_trusted_function(method)) return false;
    for (const char* keeps : {"BufferingHandler.emit", "QueueHandler.emit"})  // the program can look at the records
      if (PyUnicode_CompareWithASCIIString(reinterpret_cast<PyFunctionObject*>(method)->func_qualname, keeps) == 0)
        return false;
  }
  return true;
}

Ref attribute(Capture& capture, PyObject* object, const char* name) {
  Ref interned = Ref::steal(PyUnicode_InternFromString(name));
  return interned ? get_attr(capture, object, interned.get()) : interned;
}

// Whether no filter is asked, which is guarded; -1: error or break.
int has_no_filters(Capture& capture, PyObject* filterer) {
  Ref filters = attribute(capture, filterer, "filters");
  Ref list = filters ? for_c_code(capture, filters.get()) : Ref();
  return list ? PyList_Check(list.get()) && PyList_GET_SIZE(list.get()) == 0 : -1;
}

bool is_own_formatter(PyObject* formatter) {
  for (const char* part : {"format", "formatTime", "formatMessage", "usesTime"}) {
    PyObject* method = method_of(formatter, part);
    if (!method || !torch_layer::is_trusted_function(method)) return false;
  }
  return true;
}

// Whether no code of the program's looks at the record, which is guarded; -1: error or break.
int handles_plainly(Capture& capture, PyObject* handler) {
  if (!is_own_handler(handler)) return 0;
  if (const int plain = has_no_filters(capture, handler); plain <= 0) return plain;
  Ref formatter = attribute(capture, handler, "formatter");
  return formatter ? formatter.get() == Py_None || is_own_formatter(formatter.get()) : -1;
}

// As handles_plainly, for all handlers that a record reaches.
int reaches_own_handlers(Capture& capture, PyObject* logger) {
  Ref factory = attribute(capture, logging_module(), "_logRecordFactory");
  if (!factory || factory.get() != of_logging("LogRecord")) return factory ? 0 : -1;
  Ref at = Ref::borrow(logger);
  while (at && at.get() != Py_None) {
    Ref handlers = attribute(capture, at.get(), "handlers");
    if (const int plain = handlers && at.get() == logger ? has_no_filters(capture, logger) : 1; plain <= 0)
      return plain;
    Ref list = handlers ? for_c_code(capture, handlers.get()) : Ref();
    if (!list || !PyList_Check(list.get())) return list ? 0 : -1;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(list.get()); ++i)
      if (const int plain = handles_plainly(capture, PyList_GET_ITEM(list.get(), i)); plain <= 0) return plain;
    Ref propagate = attribute(capture, at.get(), "propagate");
    const int goes_on = propagate ? truth(capture, propagate.get()) : -1;
    if (goes_on <= 0) return goes_on < 0 ? -1 : 1;
    at = attribute(capture, at.get(), "parent");
  }
  return at ? 1 : -1;
}

// File, line and function of the frame that logs: logging's own are skipped. Empty: it is outside of the region.
std::vector<Ref> caller(const Capture& capture, long stack_level) {
  PyObject* source = PyDict_GetItemString(PyModule_GetDict(logging_module()), "_srcfile");
  for (auto frame = capture.frames.rbegin(); source && frame != capture.frames.rend(); ++frame) {
    PyCodeObject* code = frame->code();
    if (PyUnicode_Check(source) && PyUnicode_Compare(code->co_filename, source) == 0) continue;
    if (--stack_level != 0) continue;
    Ref line = Ref::steal(PyLong_FromLong(frame->line_of(frame->executing())));
    return {Ref::borrow(code->co_filename), std::move(line), Ref::borrow(code->co_name)};
  }
  return {};
}

Ref defer_record(Capture& capture, const CallArgs& call, const Record& record, std::vector<Ref> place) {
  Ref log = cpython::imported("graphlift.replayed", "log");
  Ref level = Ref::steal(PyLong_FromLong(record.level));
  if (!log || !level) return Ref();
  std::vector<Ref> args{Ref::borrow(call.args[0]), std::move(level)};
  for (Ref& part : place) args.push_back(std::move(part));
  for (Py_ssize_t i = record.first; i < call.nargs; ++i) {
    Ref arg = shown(capture, call, i);
    if (!arg) return arg;
    args.push_back(std::move(arg));
  }
  capture.deferred_calls.emplace_back(std::move(log), std::move(args));
  return Ref::borrow(Py_None);
}

}  // namespace

Ref log_call(Capture& capture, const CallArgs& call) {
  const std::optional<Record> record = parse_record(call);
  const int is_on = record ? is_shown(call.args[0], record->level) : -1;
  if (PyErr_Occurred()) return Ref();
  if (is_on == 0) {  // a record that nobody sees: the logger's own code finds that out, with what it reads guarded
    if (know_function(capture, call.callable) < 0) return Ref();
    return Ref::steal(PyObject_Vectorcall(call.callable, call.args, static_cast<size_t>(call.nargs), call.kwnames));
  }
  std::vector<Ref> place = record ? caller(capture, record->stack_level) : std::vector<Ref>();
  const int own = !place.empty() && capture.is_outside(call.args[0]) ? reaches_own_handlers(capture, call.args[0]) : 0;
  if (own < 0) return Ref();
  return own ? defer_record(capture, call, *record, std::move(place))
             : break_here(capture, "unknown_callable", describe(call.callable));
}

bool steers_deferred_calls(Capture& capture, PyObject* object, PyObject* name) {
  if (PyModule_Check(object)) {
    PyObject* modules = PyImport_GetModuleDict();
    if (object == PyDict_GetItemString(modules, "warnings")) return true;
    return object == PyDict_GetItemString(modules, "sys") && PyUnicode_CompareWithASCIIString(name, "stdout") == 0;
  }
  return capture.is_outside(object) && is_of_logging(object);
}

namespace {

bool is_attribute(PyObject* object, const char* name, PyObject* value) {
  const Ref found = Ref::steal(PyObject_GetAttrString(object, name));
  if (!found) PyErr_Clear();
  return found.get() == value;
}

// The logger and those that its records go on to ask the list.
bool is_asked(PyObject* logger, PyObject* list) {
  for (Ref at = Ref::borrow(logger); at && is_of_logging(at.get());) {
    if (is_attribute(at.get(), "filters", list) || is_attribute(at.get(), "handlers", list)) return true;
    const Ref handlers = Ref::steal(PyObject_GetAttrString(at.get(), "handlers"));
    for (Py_ssize_t i = 0; handlers && PyList_Check(handlers.get()) && i < PyList_GET_SIZE(handlers.get()); ++i)
      if (is_attribute(PyList_GET_ITEM(handlers.get(), i), "filters", list)) return true;
    at = Ref::steal(PyObject_GetAttrString(at.get(), "parent"));
  }
  PyErr_Clear();
  return false;
}

}  // namespace

bool steers_deferred_calls(const Capture& capture, PyObject* list) {
  if (capture.deferred_calls.empty()) return false;
  cpython::HookScope nobody(nullptr);
  PyObject* warnings = PyDict_GetItemString(PyImport_GetModuleDict(), "warnings");
  if (warnings && PyDict_GetItemString(PyModule_GetDict(warnings), "filters") == list) return true;
  return std::any_of(capture.deferred_calls.begin(), capture.deferred_calls.end(), [&](const auto& deferred) {
    const std::vector<Ref>& args = deferred.second;
    return !args.empty() && is_asked(args.front().get(), list);
  });
}

}  // namespace graphlift::capture
