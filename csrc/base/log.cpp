// Owns: see log.h.
#include "base/log.h"

#include <cstdio>
#include <optional>

#include "base/gil.h"
#include "base/ref.h"
#include "base/text.h"

namespace graphlift {

namespace log_state {
std::array<std::atomic<LogLevel>, kArtifactNames.size()> levels{};
}

namespace {

using Levels = std::array<LogLevel, kArtifactNames.size()>;

constexpr std::array kWords = {
#define ARTIFACT(identifier, name, words) std::string_view(words),
    GRAPHLIFT_ARTIFACTS(ARTIFACT)
#undef ARTIFACT
};

constexpr std::string_view kBlanks = " \t\n";

// Owned for the life of the process: logs may be written while the interpreter ends.
PyObject* emitter = nullptr;

std::string_view stripped(std::string_view text) {
  const size_t first = text.find_first_not_of(kBlanks);
  if (first == text.npos) return {};
  return text.substr(first, text.find_last_not_of(kBlanks) - first + 1);
}

std::optional<size_t> artifact_named(std::string_view name) {
  for (size_t i = 0; i < kArtifactNames.size(); ++i)
    if (kArtifactNames[i] == name) return i;
  return std::nullopt;
}

// Calls use(item) for each comma separated item that is not blank; stops when it says false.
template <typename Use>
bool each_item(std::string_view setting, Use use) {
  while (!setting.empty()) {
    const size_t comma = setting.find(',');
    const std::string_view item = stripped(setting.substr(0, comma));
    setting.remove_prefix(comma == setting.npos ? setting.size() : comma + 1);
    if (!item.empty() && !use(item)) return false;
  }
  return true;
}

// False: the name is unknown.
bool apply_item(std::string_view item, Levels* levels) {
  LogLevel level = LogLevel::Info;
  if (item.front() == '+') level = LogLevel::Debug;
  if (item.front() == '-') level = LogLevel::Off;
  const std::string_view name = level == LogLevel::Info ? item : stripped(item.substr(1));
  if (name == "all") {
    levels->fill(level);
    return true;
  }
  const std::optional<size_t> artifact = artifact_named(name);
  if (artifact) (*levels)[*artifact] = level;
  return artifact.has_value();
}

Levels current_levels() {
  Levels levels;
  for (size_t i = 0; i < levels.size(); ++i) levels[i] = log_level(static_cast<Artifact>(i));
  return levels;
}

void install(const Levels& levels) {
  for (size_t i = 0; i < levels.size(); ++i) log_state::levels[i].store(levels[i], std::memory_order_relaxed);
}

void write_to_stderr(std::string_view name, const std::string& text) {
  std::fprintf(stderr, "[graphlift.%.*s] %s\n", static_cast<int>(name.size()), name.data(), text.c_str());
}

// False: there is no emitter, or it failed (its error was reported).
bool emit_to_python(std::string_view name, const std::string& text) {
  if (!Py_IsInitialized()) return false;
  WithGil gil;
  bool emitted = false;
  if (emitter) {
    SavedError pending;
    Ref emit = Ref::borrow(emitter);
    Ref line = Ref::steal(PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "replace"));
    Ref label = Ref::steal(PyUnicode_FromStringAndSize(name.data(), static_cast<Py_ssize_t>(name.size())));
    Ref done;
    if (line && label) done = Ref::steal(PyObject_CallFunctionObjArgs(emit.get(), label.get(), line.get(), nullptr));
    if (!done) PyErr_WriteUnraisable(emit.get());
    emitted = static_cast<bool>(done);
  }
  return emitted;
}

}  // namespace

void emit_log(Artifact artifact, const std::string& text) {
  const std::string_view name = kArtifactNames[static_cast<size_t>(artifact)];
  if (!emit_to_python(name, text)) write_to_stderr(name, text);
}

std::string set_logs(std::string_view setting) {
  Levels levels = current_levels();
  std::string unknown;
  each_item(setting, [&](std::string_view item) {
    if (apply_item(item, &levels)) return true;
    unknown = std::string(item);
    return false;
  });
  if (!unknown.empty())
    return cat("unknown log \"", unknown, "\"; valid names: ", join(kArtifactNames, ", "),
               ", all; +name for more detail, -name to turn one off");
  install(levels);
  return {};
}

void reset_logs() { install(Levels{}); }

std::vector<std::pair<std::string_view, std::string_view>> log_table() {
  std::vector<std::pair<std::string_view, std::string_view>> rows;
  for (size_t i = 0; i < kArtifactNames.size(); ++i) rows.emplace_back(kArtifactNames[i], kWords[i]);
  return rows;
}

void set_log_emitter(PyObject* emit) {
  PyObject* before = std::exchange(emitter, Py_XNewRef(emit));
  Py_XDECREF(before);
}

}  // namespace graphlift
