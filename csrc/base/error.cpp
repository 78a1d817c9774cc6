// Owns: how an internal error is raised. Must not: catch one, or touch the pending Python exception.
#include "base/error.h"

#include <cstring>

namespace graphlift {

void internal_error(const char* file, int line, const std::string& message) {
  const char* below = std::strstr(file, "csrc/");
  throw InternalError(std::string(below ? below : file) + ":" + std::to_string(line) + ": " + message);
}

}  // namespace graphlift
