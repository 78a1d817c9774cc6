// Owns: running frames of compiled callables: lookup, capture on a miss, regions, the breaking instruction, giving up.
// Must not: know how regions are captured or executed inside.
#pragma once

#include "cpython/frame.h"
#include "cpython/hook.h"
#include "engine/region.h"
#include "eval/evaluator.h"

namespace graphlift::engine {

// Room for what one hit fetches and makes; on the stack for ordinary regions.
template <class T, size_t kInline>
class Slots {
 public:
  explicit Slots(size_t count) : count_(count), many_(count > kInline ? new T[count]() : nullptr) {
    for (size_t i = 0; i < (many_ ? 0 : count); ++i) few_[i] = T();
  }
  ~Slots() { delete[] many_; }
  Slots(const Slots&) = delete;
  Slots& operator=(const Slots&) = delete;
  T* data() { return many_ ? many_ : few_; }
  T& operator[](size_t i) { return data()[i]; }
  size_t size() const { return count_; }

 private:
  size_t count_;
  T few_[kInline];
  T* many_;
};

// Objects that one hit owns.
class Objects : public Slots<PyObject*, 48> {
 public:
  using Slots::Slots;
  ~Objects() {
    for (size_t i = 0; i < size(); ++i) Py_XDECREF((*this)[i]);
  }
};

// What a region left behind: the returned value, or locals and stack of its exit.
struct Exit {
  Ref result;
  std::vector<Ref> made;  // by recipe node
};

// Runs executable and recipe.
torch_layer::Ran run_region(const Region& region, PyObject* const* fetched, const int64_t* symbols, Exit* exit);

// What a guard check delivered.
struct Found {
  std::optional<Objects> fetched;
  std::optional<Slots<int64_t, 16>> symbols;
  void prepare(size_t fetches, size_t symbol_count) {
    fetched.emplace(fetches);
    symbols.emplace(symbol_count);
  }
  capture::Callers callers;  // as many as regions at this place asked for
  void release() { fetched.reset(); }
};

// Frames that the exit of a region inside of inlined calls is about to enter again.
struct Reentry {
  RegionPtr region;
  std::vector<Ref> made;  // by recipe node
  size_t next = 0;        // in Region::inner
};

// A frame in the call that entered the next one at once, and the one around it in such a call, too.
struct Around {
  cpython::Frame frame;
  const Around* outer;
};

// Callers that go on as the exit of a region says that went through them by the returns of inner frames.
struct Returning {
  RegionPtr region;
  Exit exit;
  _PyInterpreterFrame* to;  // the frame that gets control next
  size_t next = 0;          // in Region::callers: that frame
};

// Takes frames of the callable and of what it calls for real.
class Runner final : public cpython::FrameHandler {
 public:
  Runner(Owner& owner, PyCodeObject* root_code) : owner_(owner), root_code_(root_code) {}
  PyObject* evaluate(cpython::Frame frame, bool throwing, bool* handled) override;

 private:
  PyObject* run_frame(cpython::Frame frame, CodeEntry& entry, const Around* around, bool reentered);
  bool is_reentered(cpython::Frame frame) const;
  PyObject* reenter(cpython::Frame frame, const Around* around);
  PyObject* run_in_place(cpython::Frame frame, PyObject* function);
  eval::Outcome run_exit(cpython::Frame frame, const Around* around);
  bool pass_exit(cpython::Frame frame, const Around* around, PyObject** result);
  bool follow(cpython::Frame frame, const RegionPtr& region, Exit exit, PyObject** result);
  PyObject* leave_for_caller(cpython::Frame frame, Returning rest);
  RegionPtr find(cpython::Frame frame, const Around* around, UnitEntry& at, Found* found);
  RegionPtr make(cpython::Frame frame, const Around* around, CodeEntry& entry, UnitEntry& at);
  bool run_plain(cpython::Frame frame, int unit, eval::Outcome* outcome);
  PyObject* give_up_on_error(cpython::Frame frame, CodeEntry& entry, int unit, const std::string& words);
  PyObject* give_up(cpython::Frame frame, const Around* around, CodeEntry& entry, UnitEntry& at);
  PyObject* refuse_break(cpython::Frame frame, const Region& region);

  Owner& owner_;
  PyCodeObject* root_code_;
  std::optional<Reentry> reentry_;
  const Around* around_ = nullptr;  // of the next frame that is entered
  std::optional<Returning> returning_;
};

// Functions, as opposed to generators, class bodies and modules.
bool is_plain_function(PyCodeObject* code);
// Whether a frame of the code is captured as a root of its own when it is called for real.
bool is_captured_alone(PyCodeObject* code);

// Code that is never captured as a root of its own: torch's and the standard library's machinery.
bool is_skipped(PyCodeObject* code);
// Code of graphlift that is captured in the place of something else.
bool is_substitute(PyCodeObject* code);
// The import system and torch's own tracing: neither they nor what they call is any part of the program.
bool is_left_alone(PyCodeObject* code);
bool is_disabled(PyObject* function);
PyObject* wrapped_function(PyObject* callable);  // of a compiled callable, borrowed; null for others

}  // namespace graphlift::engine
