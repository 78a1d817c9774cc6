// Owns: the exception table of a code object (co_exceptiontable), decoded. Must not: know frames.
#pragma once

#include <span>
#include <vector>

namespace graphlift::cpython {

// Instructions in [begin, end) are handled at `handler` with the stack cut down to `depth` values; `push_unit`: the
// handler expects the unit of the raising instruction on the stack, below the exception.
struct HandlerEntry {
  int begin, end;
  int handler;
  int depth;
  bool push_unit;
};

// In order of `begin`; ranges are disjoint. A malformed table gives what was read before the damage.
std::vector<HandlerEntry> parse_exception_table(std::span<const unsigned char> bytes);

// The entry that covers `unit`, or null.
const HandlerEntry* find_handler(std::span<const HandlerEntry> entries, int unit);

}  // namespace graphlift::cpython
