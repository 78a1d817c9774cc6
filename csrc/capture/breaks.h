// Owns: graph breaks: their table, the pending one of a capture, and the private exception that unwinds to the root.
// Must not: decide what breaks. `break_here` is the only place where a break is raised.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/ref.h"
#include "ir/graph.h"

namespace graphlift::capture {

class Capture;

struct BreakRow {
  const char* id;
  const char* sentence;
  const char* hint;
};

const BreakRow* find_break(std::string_view id);  // null when unknown
std::vector<BreakRow> break_table();

struct Break {
  const BreakRow* row;
  std::string detail;
  std::vector<ir::SourceLine> stack;  // outermost first

  std::string sentence() const;
  std::string message() const;  // sentence, hint and the user's stack, as logs and fullgraph errors show them
};

// Makes the break pending (the first one stays) and sets the private exception. Returns a null Ref for `return
// break_here(...)`.
Ref break_here(Capture& capture, std::string_view id, std::string detail = {});
inline int break_status(Capture& capture, std::string_view id, std::string detail = {}) {
  break_here(capture, id, std::move(detail));
  return -1;
}

}  // namespace graphlift::capture
