// Owns: what unwind.h says.
#include "cpython/unwind.h"

#include "cpython/exception.h"

namespace graphlift::cpython {
namespace {

void push(Frame frame, PyObject* value) { frame.locals()[frame.top()++] = value; }

}  // namespace

void cut_stack(Frame frame, int depth) {
  const int floor = frame.local_count() + depth;
  while (frame.top() > floor) {
    int& top = frame.top();
    Py_XDECREF(std::exchange(frame.locals()[--top], nullptr));
  }
}

bool enter_handler(Frame frame, const Decoded& decoded, int unit) {
  const HandlerEntry* entry = find_handler(decoded.handlers, unit);
  if (!entry) return false;
  Ref exception = take_exception();
  cut_stack(frame, entry->depth);
  if (entry->push_unit) push(frame, PyLong_FromLong(frame.executing()));
  push(frame, exception.release());
  frame.set_position(entry->handler);
  return true;
}

}  // namespace graphlift::cpython
