// Owns: the C++ face of the three kinds of errors. A graph break is not a C++ error (capture/breaks.h); a Python error
// is the interpreter's pending exception, signalled by a null Ref, -1 or false; an internal error is ours:
// InternalError. Must not: turn one kind into another. Only engine/ catches InternalError, and falls back to eager
// there.
#pragma once

#include <stdexcept>
#include <string>

namespace graphlift {

class InternalError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// The program has been changed by then, so that no run in eager can follow.
class LateInternalError : public InternalError {
 public:
  using InternalError::InternalError;
};

[[noreturn]] void internal_error(const char* file, int line, const std::string& message);

}  // namespace graphlift

// Holds in a correct program. A failure is an internal error with its place in our source.
#define GL_CHECK(condition, message)                              \
  do {                                                            \
    if (!(condition)) [[unlikely]]                                \
      ::graphlift::internal_error(__FILE__, __LINE__, (message)); \
  } while (0)
