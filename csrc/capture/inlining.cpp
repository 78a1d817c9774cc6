// Owns: see inlining.h.
#include "capture/inlining.h"

#include <algorithm>

#include "base/error.h"
#include "capture/calls.h"
#include "cpython/generator.h"
#include "eval/evaluator.h"
#include "torch/any_layout.h"

namespace graphlift::capture {

FrameContent::FrameContent(cpython::Frame frame) : frame_(frame), position_(frame.position()), depth_(frame.depth()) {
  for (int i = 0; i < frame.local_count() + depth_; ++i) values_.push_back(Ref::borrow(frame.locals()[i]));
}

void FrameContent::drop(cpython::Dropping& dropping) const {
  for (const Ref& value : values_) dropping.drop(value.get());
}

FrameContent::~FrameContent() {
  SavedError error;
  const int now = frame_.local_count() + frame_.depth();
  frame_.set_depth(depth_);
  const int count = static_cast<int>(values_.size());
  for (int i = 0; i < std::max(now, count); ++i) {
    PyObject* before = i < now ? frame_.locals()[i] : nullptr;
    frame_.locals()[i] = i < count ? values_[static_cast<size_t>(i)].release() : nullptr;
    Py_XDECREF(before);
  }
  frame_.set_position(position_);
}

PyObject* InlineHandler::evaluate(cpython::Frame frame, bool throwing, bool* handled) {
  *handled = true;
  if (!throwing) note_generator(frame);
  std::vector<Standing>& standing = capture_.standing;
  if (standing.size() > capture_.frames.size())
    standing.erase(standing.begin() + static_cast<std::ptrdiff_t>(capture_.frames.size()), standing.end());
  capture_.frames.push_back(frame);
  PyObject* result = nullptr;
  try {
    result = inlined(frame, throwing);
  } catch (const InternalError& error) {
    if (!capture_.internal_error) capture_.internal_error = error.what();
    break_here(capture_, "internal_recording", error.what());
    result = leave_pending(frame);
  }
  capture_.frames.pop_back();
  return result;
}

// What it has to do when it dies must not happen for real. Closed, it may be dying already: no weak reference to it
// would be told of that.
void InlineHandler::note_generator(cpython::Frame frame) {
  PyObject* generator = cpython::generator_of(frame);
  if (!generator) return;
  Ref& known = capture_.generators[generator];
  if (known && PyWeakref_GET_OBJECT(known.get()) == generator) return;
  SavedError error;
  known = Ref::steal(PyWeakref_NewRef(generator, nullptr));
  if (!known) PyErr_Clear();
}

PyObject* InlineHandler::inlined(cpython::Frame frame, bool throwing) {
  const torch_layer::ProgramsLayout exact;
  PyObject* result = nullptr;
  if (!eval::Evaluator::can_run(frame)) break_here(capture_, "coroutine");
  if (semantics_.unwinding() || !may_enter(frame, throwing)) {
    result = leave_pending(frame);
  } else {
    eval::Outcome outcome = eval::Evaluator::run(frame, semantics_, throwing);
    if (outcome.exit == eval::Exit::Raised && !capture_.pending) note_raise(capture_);
    result =
        outcome.exit == eval::Exit::Stopped ? leave_pending(frame) : eval::Evaluator::finish(frame, std::move(outcome));
  }
  return result;
}

// With an exception on its way in (a generator's throw() or close()), the checks must not see it.
bool InlineHandler::may_enter(cpython::Frame& frame, bool throwing) {
  if (!throwing) return enter_frame(capture_, frame);
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  const bool may = enter_frame(capture_, frame);
  if (may) {
    PyErr_Restore(type, value, traceback);
  } else {
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(traceback);
  }
  return may;
}

// The private exception goes through the frame's handlers no more: the frame is emptied of them by CPython's own
// unwinding.
PyObject* InlineHandler::leave_pending(cpython::Frame frame) {
  if (!PyErr_Occurred()) PyErr_SetString(PyExc_SystemError, "graphlift: unwinding to the root");
  return cpython::leave_unwinding(frame);
}

}  // namespace graphlift::capture
