// Owns: frames under a capture: the root's content, put back at the end, and the evaluation of frames that are entered.
// Must not: decide where a region ends (root.cpp).
#pragma once

#include <vector>

#include "capture/capture.h"
#include "capture/semantics.h"
#include "cpython/frame.h"
#include "cpython/hook.h"

namespace graphlift::capture {

// The root frame's content, put back at the end.
class FrameContent {
 public:
  explicit FrameContent(cpython::Frame frame);
  ~FrameContent();
  FrameContent(const FrameContent&) = delete;
  FrameContent& operator=(const FrameContent&) = delete;
  PyObject* local(size_t slot) const { return values_[slot].get(); }
  void drop(cpython::Dropping& dropping) const;  // its references

 private:
  cpython::Frame frame_;
  int position_, depth_;
  std::vector<Ref> values_;
};

// Evaluates the frames that are entered while capturing.
class InlineHandler final : public cpython::FrameHandler {
 public:
  InlineHandler(Capture& capture, CaptureSemantics& semantics) : capture_(capture), semantics_(semantics) {}
  // Called from C: an internal error is put aside and thrown again at the root.
  PyObject* evaluate(cpython::Frame frame, bool throwing, bool* handled) override;

 private:
  void note_generator(cpython::Frame frame);
  PyObject* inlined(cpython::Frame frame, bool throwing);
  bool may_enter(cpython::Frame& frame, bool throwing);
  PyObject* leave_pending(cpython::Frame frame);

  Capture& capture_;
  CaptureSemantics& semantics_;
};

}  // namespace graphlift::capture
