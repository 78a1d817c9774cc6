// Owns: what users are told: logs, warnings, events for explain().
// Must not: decide anything.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/ref.h"
#include "engine/region.h"

namespace graphlift::engine {

void report_region(PyCodeObject* code, const Region& region, const capture::Captured& facts);
// `told`: in the caller of the frame already.
void report_break(PyCodeObject* code, const Region& region, bool told);
std::map<std::string, uint64_t>& break_counts();  // by sentence, since the last reset
void report_recompile(PyCodeObject* code, int unit, const std::vector<std::string>& reasons);
void report_limit(PyCodeObject* code, size_t limit, const std::string& last_reason);
// Forgets the pending error of a graph, with a hint: the program runs in eager and meets it itself.
void leave_error_to_program(PyCodeObject* code);
// An internal error: raised under GRAPHLIFT_STRICT=1 (false: a Python error is set), else a warning, once: callers give
// the code up.
bool report_internal_error(PyCodeObject* code, const std::string& words);
bool strict();
void raise_graph_break(const std::string& words);
void raise_internal_error(const std::string& words);

// Events collected between start and stop, as dicts.
void explain_start();
Ref explain_stop();
bool explaining();

}  // namespace graphlift::engine
