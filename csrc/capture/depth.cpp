// Owns: see depth.h.
#include "capture/depth.h"

#include <algorithm>

#include "capture/attributes.h"
#include "capture/capture.h"
#include "capture/control_flow.h"
#include "cpython/decode.h"

namespace graphlift::capture {

namespace {

using cpython::Micro;

}  // namespace

PyObject** called_at(cpython::Frame frame, int unit) {
  const cpython::Decoded& decoded = cpython::decode(frame.code());
  const cpython::Instruction& instruction = decoded.at_unit(unit);
  PyObject** top = frame.locals() + frame.top();
  for (int i = instruction.micro_begin; i < instruction.micro_end; ++i) {
    const cpython::MicroOp& op = decoded.micros[static_cast<size_t>(i)];
    if (op.micro == Micro::Call) {
      PyObject** slots = top - op.arg - 2;
      return slots[0] ? slots : slots + 1;
    }
    if (op.micro == Micro::CallEx) {
      PyObject** slots = top - 3 - (op.arg & 1);
      if (!PyTuple_CheckExact(slots[2]) || ((op.arg & 1) && slots[3] && !PyDict_CheckExact(slots[3]))) return nullptr;
      return slots[1] ? slots + 1 : slots;
    }
  }
  return nullptr;
}

namespace {

// What the instruction calls. Null: it calls nothing, or operands that a second call would find used up.
PyObject* callee(const Standing& at) {
  PyObject** slot = at.frame.depth() == at.depth ? called_at(at.frame, at.unit) : nullptr;
  if (!slot || !*slot) return nullptr;
  PyObject* in_place = control_flow_at(at.frame.code(), at.unit, *slot);
  return in_place ? in_place : *slot;
}

// The Python function that a call of the object enters at once; null: C code comes first.
PyObject* entered_function(PyObject* callable) {
  if (PyFunction_Check(callable)) return callable;
  if (PyMethod_Check(callable)) return entered_function(PyMethod_GET_FUNCTION(callable));
  if (PyType_Check(callable) || PyCFunction_Check(callable)) return nullptr;
  Ref name = Ref::steal(PyUnicode_InternFromString("__call__"));
  PyObject* found = name ? _PyType_Lookup(Py_TYPE(callable), name.get()) : nullptr;
  return found && PyFunction_Check(found) ? found : nullptr;
}

bool is_plain(PyCodeObject* code) {
  constexpr int kPlain = CO_OPTIMIZED | CO_NEWLOCALS;
  constexpr int kOther = CO_GENERATOR | CO_COROUTINE | CO_ASYNC_GENERATOR | CO_ITERABLE_COROUTINE;
  return (code->co_flags & kPlain) == kPlain && !(code->co_flags & kOther);
}

// The caller's call, made once more, enters the callee's frame before anything else happens.
bool enters(const Standing& caller, const cpython::Frame& frame) {
  PyObject* callable = callee(caller);
  PyObject* function = callable ? entered_function(callable) : nullptr;
  return function && function == frame.function() && !frame.is_generator() && is_plain(frame.code());
}

size_t begun(const Capture& capture) { return std::min(capture.standing.size(), capture.frames.size()); }

}  // namespace

void note_standing(Capture& capture, cpython::Frame frame, int unit) {
  std::vector<Standing>& all = capture.standing;
  const Standing now{frame, unit, frame.depth(), capture.instructions, capture.tracer->call_count()};
  const size_t at = capture.frames.size() - 1;
  if (all.size() > at)
    all[at] = now;
  else if (all.size() == at)
    all.push_back(now);
}

DepthExit innermost_exit(const Capture& capture) {
  DepthExit exit;
  const size_t count = begun(capture);
  if (count == 0) return exit;
  exit.calls = capture.standing[0].calls;
  exit.entered = 1;
  for (size_t i = 0; i < count; ++i) {
    const Standing& at = capture.standing[i];
    if (i > 0 && exit.entered == i && enters(capture.standing[i - 1], at.frame)) ++exit.entered;
    exit.places.push_back({Ref::borrow(reinterpret_cast<PyObject*>(at.frame.code())), at.unit, at.instruction});
  }
  return exit;
}

void note_raise(Capture& capture) {
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  PyErr_NormalizeException(&type, &value, &traceback);
  // Looking a type's attribute up clears what is pending.
  if (!value || capture.raised_exception != value) capture.raised = innermost_exit(capture);
  capture.raised_exception = value;
  PyErr_Restore(type, value, traceback);
}

bool stands_at(const Capture& capture, const DepthExit& exit) {
  if (capture.frames.size() != exit.entered || capture.standing.size() < exit.entered) return false;
  for (size_t i = 0; i < exit.entered; ++i) {
    const Standing& at = capture.standing[i];
    const Place& place = exit.places[i];
    if (reinterpret_cast<PyObject*>(at.frame.code()) != place.code.get() || at.unit != place.unit) return false;
    if (i > 0 && !enters(capture.standing[i - 1], at.frame)) return false;
  }
  return true;
}

bool entered_at_once(cpython::Frame caller, cpython::Frame frame) {
  return enters({caller, caller.executing(), caller.depth(), 0, 0}, frame);
}

std::vector<ir::SourceLine> lines_of(const std::vector<Place>& places) {
  std::vector<ir::SourceLine> lines;
  for (const Place& place : places) {
    auto* code = reinterpret_cast<PyCodeObject*>(place.code.get());
    const char* file = PyUnicode_AsUTF8(code->co_filename);
    const char* function = PyUnicode_AsUTF8(code->co_name);
    const int line = PyCode_Addr2Line(code, place.unit * static_cast<int>(sizeof(_Py_CODEUNIT)));
    lines.push_back({file ? file : "?", line, function ? function : "?"});
  }
  return lines;
}

}  // namespace graphlift::capture
