// Owns: see report.h.
#include "engine/report.h"

#include <cstdlib>
#include <cstring>

#include "base/log.h"
#include "base/text.h"
#include "capture/control_flow.h"
#include "cpython/hook.h"
#include "engine/program_text.h"

namespace graphlift::engine {

namespace {

Ref& events() {
  static Ref list;
  return list;
}

std::string file_of(PyCodeObject* code) {
  const char* text = PyUnicode_AsUTF8(code->co_filename);
  return text ? text : "?";
}

int line_at(PyCodeObject* code, int unit) {
  const int line = PyCode_Addr2Line(code, unit * 2);
  return line > 0 ? line : code->co_firstlineno;
}

std::string place(PyCodeObject* code, int unit) { return file_of(code) + ":" + std::to_string(line_at(code, unit)); }

void put(PyObject* dict, const char* key, Ref value) {
  if (!value || PyDict_SetItemString(dict, key, value.get()) < 0) PyErr_Clear();
}

Ref text(const std::string& words) {
  return Ref::steal(PyUnicode_DecodeUTF8(words.data(), static_cast<Py_ssize_t>(words.size()), "replace"));
}

void add_event(const char* kind, const std::string& file, int line,
               std::initializer_list<std::pair<const char*, Ref>> parts) {
  if (!events()) return;
  Ref dict = Ref::steal(PyDict_New());
  if (!dict) return PyErr_Clear();
  put(dict.get(), "kind", text(kind));
  put(dict.get(), "file", text(file));
  put(dict.get(), "line", Ref::steal(PyLong_FromLong(line)));
  for (const auto& [key, value] : parts) put(dict.get(), key, value);
  if (PyList_Append(events().get(), dict.get()) < 0) PyErr_Clear();
}

Ref lines(const std::string& words) {
  Ref whole = text(words);
  return whole ? Ref::steal(PyUnicode_Splitlines(whole.get(), 0)) : Ref();
}

std::string stack_line(const ir::SourceLine& where) {
  return "File \"" + where.file + "\", line " + std::to_string(where.line) + ", in " + where.function;
}

PyObject* class_named(const char* name) {
  Ref module = Ref::steal(PyImport_ImportModule("graphlift.errors"));
  Ref found = module ? Ref::steal(PyObject_GetAttrString(module.get(), name)) : Ref();
  if (!found) PyErr_Clear();
  return found ? found.get() : PyExc_RuntimeError;
}

// Every round of a loop meets it: no surprise to the user, told in detail only.
bool is_seam(const std::string& id) {
  return id == "loop_boundary" || id == "inner_generator" || id == "filling" || id == capture::kControlFlowBreak;
}

void warn(const std::string& words) {
  SavedError error;
  if (PyErr_WarnEx(class_named("GraphliftWarning"), words.c_str(), 1) < 0) PyErr_Clear();
}

// Shapes of these operators are not known in C++: torch's Python code was asked, which takes long.
void hint_at_operators() {
  static size_t told = 0;
  const std::vector<std::string> names = torch_layer::meta_operators();
  if (names.size() == told) return;
  told = names.size();
  log(Artifact::PerfHints, "capturing is slow for operators without a shape rule: " + join(names, ", "));
}

}  // namespace

bool strict() {
  const char* value = std::getenv("GRAPHLIFT_STRICT");
  return value && std::strcmp(value, "0") != 0 && *value;
}

bool explaining() { return static_cast<bool>(events()); }

void raise_graph_break(const std::string& words) {
  cpython::HookScope nobody(nullptr);  // loggers and warnings are no part of the program
  PyErr_SetString(class_named("GraphBreakError"), words.c_str());
}

void raise_internal_error(const std::string& words) {
  cpython::HookScope nobody(nullptr);  // loggers and warnings are no part of the program
  ++counters().internal_errors;
  PyErr_SetString(class_named("InternalError"), ("graphlift met an internal error in a region: " + words).c_str());
}

void explain_start() { events() = Ref::steal(PyList_New(0)); }

Ref explain_stop() {
  Ref list = events() ? events() : Ref::steal(PyList_New(0));
  events().reset();
  return list;
}

void report_region(PyCodeObject* code, const Region& region, const capture::Captured& facts) {
  cpython::HookScope nobody(nullptr);  // loggers and warnings are no part of the program

  const std::string at = place(code, region.begin_unit);
  const std::string name = PyUnicode_AsUTF8(code->co_name);
  log(Artifact::Bytecode, [&] {
    return "bytecode evaluated for the region at " + at + " in " + name + "\n" + instructions_text(facts.evaluated);
  });
  if (region.guards)
    log(Artifact::Guards, [&] { return "guards of region at " + at + " in " + name + "\n" + region.guards->text(); });
  if (log_on(Artifact::PerfHints)) hint_at_operators();
  if (!region.executable) return;
  log(Artifact::Graph, [&] { return "graph at " + at + " in " + name + "\n" + region.executable->forward_text(); });
  log(Artifact::GraphCode,
      [&] { return "graph code at " + at + " in " + name + "\n" + region.executable->forward_code(line_text); });
  log(Artifact::AotGraphs, [&] {
    const std::string backward = region.executable->backward_text();
    return "forward at " + at + "\n" + region.executable->forward_text() +
           (backward.empty() ? "no backward" : "backward\n" + backward);
  });
  if (!explaining()) return;
  add_event("graph", file_of(code), line_at(code, region.begin_unit),
            {{"function", text(name)},
             {"forward", text(region.executable->forward_text())},
             {"backward", text(region.executable->backward_text())},
             {"calls", Ref::steal(PyLong_FromSize_t(region.executable->forward_calls()))},
             {"guards", lines(region.guards->text())},
             {"seconds", Ref::steal(PyFloat_FromDouble(facts.seconds))}});
}

void report_break(PyCodeObject* code, const Region& region, bool told) {
  cpython::HookScope nobody(nullptr);  // loggers and warnings are no part of the program

  if (!region.reason) return;
  const capture::Break& why = *region.reason;
  const std::string id = why.row->id;
  const capture::Place* innermost = region.inner.empty() ? nullptr : &region.inner.back();
  const std::string exit = innermost ? place(reinterpret_cast<PyCodeObject*>(innermost->code.get()), innermost->unit)
                                     : place(code, region.exit_unit);
  const bool seam = is_seam(id) || told;
  if (!seam || log_verbose(Artifact::GraphBreaks))
    log(Artifact::GraphBreaks, [&] { return (seam ? "Seam at " : "Graph break at ") + exit + "\n" + why.message(); });
  if (seam) return;
  ++counters().graph_breaks;
  ++break_counts()[why.sentence()];
  if (!explaining()) return;
  Ref stack = Ref::steal(PyList_New(0));
  for (const ir::SourceLine& where : why.stack) {
    Ref line = text(stack_line(where));
    if (!stack || !line || PyList_Append(stack.get(), line.get()) < 0) PyErr_Clear();
  }
  const bool known = !why.stack.empty();
  add_event("break", known ? why.stack.back().file : file_of(code),
            known ? why.stack.back().line : line_at(code, region.exit_unit),
            {{"reason", text(why.sentence())}, {"hint", text(why.row->hint)}, {"stack", stack}, {"id", text(id)}});
}

std::map<std::string, uint64_t>& break_counts() {
  static std::map<std::string, uint64_t> counts;
  return counts;
}

void report_recompile(PyCodeObject* code, int unit, const std::vector<std::string>& reasons) {
  cpython::HookScope nobody(nullptr);  // loggers and warnings are no part of the program

  ++counters().recompiles;
  const std::string name = PyUnicode_AsUTF8(code->co_name);
  std::string words = "Recompiling " + name + " at " + place(code, unit);
  for (const std::string& reason : reasons) words += "\n    because " + reason;
  log(Artifact::Recompiles, [&] { return words; });
  add_event("recompile", file_of(code), line_at(code, unit), {{"reason", text(words)}});
}

void report_limit(PyCodeObject* code, size_t limit, const std::string& last_reason) {
  cpython::HookScope nobody(nullptr);  // loggers and warnings are no part of the program

  ++counters().given_up;
  const std::string name = PyUnicode_AsUTF8(code->co_name);
  const std::string words = "graphlift runs " + name + " (" + place(code, 0) +
                            ") in eager from now on: " + std::to_string(limit) +
                            " regions were compiled for it. Last reason: " + last_reason +
                            ". GRAPHLIFT_LOGS=recompiles shows all; options={\"recompile_limit\": n} raises the limit.";
  add_event("limit", file_of(code), code->co_firstlineno, {{"reason", text(words)}});
  log(Artifact::PerfHints, words);
  warn(words);
}

void leave_error_to_program(PyCodeObject* code) {
  cpython::HookScope nobody(nullptr);  // loggers and warnings are no part of the program
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  const Ref owned_type = Ref::steal(type), owned_value = Ref::steal(value), owned_traceback = Ref::steal(traceback);
  log(Artifact::PerfHints, [&] {
    const Ref text = Ref::steal(PyObject_Str(value ? value : type));
    const char* words = text ? PyUnicode_AsUTF8(text.get()) : nullptr;
    if (!words) PyErr_Clear();
    return "a graph of " + std::string(PyUnicode_AsUTF8(code->co_name)) + " failed: " + (words ? words : "?") +
           ". This call runs in eager, which meets the error at its own line";
  });
}

bool report_internal_error(PyCodeObject* code, const std::string& words) {
  cpython::HookScope nobody(nullptr);  // loggers and warnings are no part of the program

  ++counters().internal_errors;
  const std::string name = code ? PyUnicode_AsUTF8(code->co_name) : "?";
  const std::string message = "graphlift met an internal error in " + name + ": " + words;
  if (strict()) {
    PyErr_SetString(class_named("InternalError"), message.c_str());
    return false;
  }
  warn(message + ". The call runs in eager; please report this with the code that shows it.");
  return true;
}

}  // namespace graphlift::engine
