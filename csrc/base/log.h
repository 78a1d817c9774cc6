// Owns: named logs, which are on, and where their lines go. Names are torch's, for GRAPHLIFT_LOGS and TORCH_LOGS alike.
// Must not: format anybody's messages, or cost more than a load and a branch while a log is off.
#pragma once

#include <Python.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace graphlift {

// ARTIFACT(identifier, "name", "what it shows")
#define GRAPHLIFT_ARTIFACTS(ARTIFACT)                                                               \
  ARTIFACT(GraphBreaks, "graph_breaks", "each graph break: reason, place in the user's code, hint") \
  ARTIFACT(Recompiles, "recompiles", "each recompilation: the guards that failed, in words")        \
  ARTIFACT(Guards, "guards", "the guards of each region")                                           \
  ARTIFACT(Graph, "graph", "the captured graph of each region, an operator a line")                 \
  ARTIFACT(GraphCode, "graph_code", "the captured graph as Python code, with the user's lines")     \
  ARTIFACT(AotGraphs, "aot_graphs", "the forward and backward graph of each region")                \
  ARTIFACT(OutputCode, "output_code", "what a backend made: calls and kernels")                     \
  ARTIFACT(Bytecode, "bytecode", "the instructions that each region stands for")                    \
  ARTIFACT(PerfHints, "perf_hints", "what keeps a region from being faster")

enum class Artifact : uint8_t {
#define ARTIFACT(identifier, name, words) identifier,
  GRAPHLIFT_ARTIFACTS(ARTIFACT)
#undef ARTIFACT
};

inline constexpr std::array kArtifactNames = {
#define ARTIFACT(identifier, name, words) std::string_view(name),
    GRAPHLIFT_ARTIFACTS(ARTIFACT)
#undef ARTIFACT
};

enum class LogLevel : uint8_t { Off, Info, Debug };  // Debug: asked for as "+name"

namespace log_state {
extern std::array<std::atomic<LogLevel>, kArtifactNames.size()> levels;
}

inline LogLevel log_level(Artifact artifact) {
  return log_state::levels[static_cast<size_t>(artifact)].load(std::memory_order_relaxed);
}
inline bool log_on(Artifact artifact) { return log_level(artifact) != LogLevel::Off; }
inline bool log_verbose(Artifact artifact) { return log_level(artifact) == LogLevel::Debug; }

// Sends `text` (one or more lines) to the registered emitter, else to stderr. Takes the GIL; a pending Python error
// stays.
void emit_log(Artifact artifact, const std::string& text);

inline void log(Artifact artifact, const std::string& text) {
  if (log_on(artifact)) emit_log(artifact, text);
}
// `words()` is called only when the log is on.
template <typename Words>
  requires std::is_invocable_r_v<std::string, Words>
void log(Artifact artifact, Words&& words) {
  if (log_on(artifact)) emit_log(artifact, std::forward<Words>(words)());
}

// Turns logs on and off: "graph_breaks,+guards,-bytecode", "all", "-all"; blanks are allowed. Returns an empty string,
// or what is wrong with the setting (nothing is changed then). Who reads the environment calls this with what it says.
std::string set_logs(std::string_view setting);
void reset_logs();                                                       // all off
std::vector<std::pair<std::string_view, std::string_view>> log_table();  // names and what they show

// Called as emit(artifact: str, text: str), with the GIL. Null: stderr. Call with the GIL.
void set_log_emitter(PyObject* emit);

}  // namespace graphlift
