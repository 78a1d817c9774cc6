// Owns: see callers.h.
#include "capture/callers.h"

#include "base/error.h"
#include "capture/attributes.h"
#include "capture/capture.h"
#include "cpython/death.h"
#include "cpython/decode.h"

namespace graphlift::capture {

using guards::OriginKind;

namespace {

// The call that the frame executes.
cpython::MicroOp call_of(cpython::Frame caller) {
  const cpython::Decoded& decoded = cpython::decode(caller.code());
  const cpython::Instruction& instruction = decoded.at_unit(caller.executing());
  for (int i = instruction.micro_begin; i < instruction.micro_end; ++i) {
    const cpython::MicroOp& op = decoded.micros[static_cast<size_t>(i)];
    if (op.micro == cpython::Micro::Call || op.micro == cpython::Micro::CallEx) return op;
  }
  throw InternalError("a frame around another one makes no call");
}

int operand_count(const cpython::MicroOp& call) {
  return call.micro == cpython::Micro::Call ? call.arg + 2 : 3 + (call.arg & 1);
}

void drop_content(cpython::Frame frame, cpython::Dropping& dropping) {
  dropping.drop(frame.function());
  for (int i = 0; i < frame.local_count() + frame.depth(); ++i) dropping.drop(frame.locals()[i]);
}

// A call with a tuple of arguments holds it, its keywords and what is in them once more as long as it lasts.
void drop_copies(cpython::Frame caller, cpython::Dropping& dropping) {
  const cpython::MicroOp call = call_of(caller);
  if (call.micro != cpython::Micro::CallEx) return;
  const int count = operand_count(call);
  PyObject** slots = caller.locals() + caller.top() - count;
  for (int k = 2; k < count; ++k) dropping.drop(slots[k]);
  if (PyObject* args = slots[2]; PyTuple_CheckExact(args))
    for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(args); ++k) dropping.drop(PyTuple_GET_ITEM(args, k));
  PyObject *keywords = count > 3 ? slots[3] : nullptr, *value;
  Py_ssize_t at = 0;
  while (keywords && PyDict_CheckExact(keywords) && PyDict_Next(keywords, &at, nullptr, &value)) dropping.drop(value);
}

void drop_operands(cpython::Frame frame, int count) {
  for (int i = 0; i < count; ++i) {
    const int last = frame.depth() - 1;
    Ref::steal(std::exchange(frame.stack()[last], nullptr));
    frame.set_depth(last);
  }
}

}  // namespace

void Callers::add(cpython::Frame frame) {
  begins.push_back(static_cast<int>(held.size()));
  held.push_back(frame.function());
  held.insert(held.end(), frame.locals(), frame.locals() + frame.local_count() + frame.depth());
  frames.push_back(frame);
}

bool is_in_loop(cpython::Frame caller) {
  const cpython::Decoded& decoded = cpython::decode(caller.code());
  const int call = decoded.at_unit(caller.executing()).unit;
  for (const cpython::Instruction& instruction : decoded.instructions) {
    if (instruction.unit < call) continue;
    for (int i = instruction.micro_begin; i < instruction.micro_end; ++i) {
      const int target = cpython::jump_target(decoded.micros[static_cast<size_t>(i)]);
      if (target >= 0 && target <= call) return true;
    }
  }
  return false;
}

size_t quiet_levels(cpython::Frame frame, const Callers& callers) {
  cpython::Dropping dropping;
  drop_content(frame, dropping);
  size_t level = 0;
  for (; level < callers.frames.size(); ++level) {
    drop_content(callers.frames[level], dropping);
    drop_copies(callers.frames[level], dropping);
    if (dropping.acts()) break;
  }
  return level;
}

bool go_on_in(Capture& capture, const Callers& callers, size_t level, PyObject* result) {
  cpython::Frame caller = callers.frames[level];
  const int operands = operand_count(call_of(caller));
  // What the frame before held is let go.
  capture.dropped = true;
  capture.caller_root = callers.begins[level];
  capture.frames.front() = caller;
  if (PyObject* function = caller.function()) {
    capture.know(function, capture.origins().root(OriginKind::Caller, *capture.caller_root));
    if (know_function(capture, function) < 0) return false;
  }
  drop_operands(caller, operands);
  for (int i = 0; i < caller.depth(); ++i) {
    PyObject*& value = caller.stack()[i];
    if (!value) continue;
    Ref seen = capture.admit(value, capture.root_stack(i));
    if (!seen) return false;
    Ref::steal(std::exchange(value, seen.release()));
  }
  caller.stack()[caller.depth()] = Py_NewRef(result);
  caller.set_depth(caller.depth() + 1);
  caller.set_position(cpython::decode(caller.code()).at_unit(caller.executing()).next);
  return true;
}

}  // namespace graphlift::capture
