// Owns: see root.h.
#include "capture/root.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <functional>
#include <limits>
#include <optional>
#include <utility>

#include "base/error.h"
#include "capture/attributes.h"
#include "capture/calls.h"
#include "capture/deferred.h"
#include "capture/expectations.h"
#include "capture/handled.h"
#include "capture/inlining.h"
#include "capture/semantics.h"
#include "capture/snapshot.h"
#include "cpython/generator.h"
#include "cpython/hook.h"
#include "cpython/liveness.h"
#include "eval/evaluator.h"
#include "torch/ambient_state.h"
#include "torch/expectations.h"

namespace graphlift::capture {

using guards::OriginKind;

namespace {

thread_local Capture* g_current = nullptr;
constexpr size_t kNoStop = static_cast<size_t>(-1);
constexpr size_t kDepthTries = 3;  // exits inside of inlined calls, each one call less deep

class CurrentCapture {
 public:
  explicit CurrentCapture(Capture* capture) : before_(std::exchange(g_current, capture)) {}
  ~CurrentCapture() { g_current = before_; }
  CurrentCapture(const CurrentCapture&) = delete;
  CurrentCapture& operator=(const CurrentCapture&) = delete;

 private:
  Capture* before_;
};

// What `except` clauses of the program handle (sys.exc_info) is as before when an attempt ends inside of one.
class HandledException {
 public:
  HandledException() : before_(Ref::steal(PyErr_GetHandledException())) {}
  ~HandledException() { PyErr_SetHandledException(before_.get()); }
  HandledException(const HandledException&) = delete;
  HandledException& operator=(const HandledException&) = delete;

 private:
  Ref before_;
};

// Finalizers of unrelated objects must not run inside a recording.
class NoCollector {
 public:
  NoCollector() : was_enabled_(PyGC_Disable() == 1) {}
  ~NoCollector() {
    if (was_enabled_) PyGC_Enable();
  }
  NoCollector(const NoCollector&) = delete;
  NoCollector& operator=(const NoCollector&) = delete;

 private:
  bool was_enabled_;
};

// The pending exception, with its message when it is a plain string: no code of the program's runs.
std::string pending_words() {
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  PyErr_NormalizeException(&type, &value, &traceback);
  std::string words = type ? reinterpret_cast<PyTypeObject*>(type)->tp_name : "an exception";
  PyObject* args = value ? reinterpret_cast<PyBaseExceptionObject*>(value)->args : nullptr;
  PyObject* first = args && PyTuple_GET_SIZE(args) == 1 ? PyTuple_GET_ITEM(args, 0) : nullptr;
  const char* message = first && PyUnicode_CheckExact(first) ? PyUnicode_AsUTF8(first) : nullptr;
  if (message) words += " (" + std::string(message, std::min<size_t>(std::strlen(message), 120)) + ")";
  PyErr_Restore(type, value, traceback);
  return words;
}

// One attempt. Ends at the frame's return, before root instruction number `stop_at`, or at a break.
class Attempt {
 public:
  // `depth`: where it ends inside of inlined calls, or null. `levels`: callers that it may go on in.
  Attempt(const Request& request, size_t stop_at, const DepthExit* depth, size_t levels)
      : request_(request),
        stop_at_(stop_at),
        depth_(depth),
        levels_(levels),
        root_(request.frame),
        capture_(request.frame.code(), request.dynamic, request.seen) {}

  // False: try again with *next_stop.
  bool run(Captured* out, size_t* next_stop, std::optional<Break>* reason);
  bool again() const { return capture_.again; }
  // In how many callers it can't go on, as far as is known now; none: it did not try.
  std::optional<size_t> refused_level() const { return refused_level_; }
  // Where the break happened, or the exception was raised.
  DepthExit& left() { return capture_.left; }

 private:
  bool admit_stack();
  eval::Outcome run_root(CaptureSemantics& semantics, Captured* out);
  bool is_as_before(size_t slot) const;
  PyObject* unfinished_generator() const;
  void drop_generators();
  bool classify(eval::Outcome& outcome, CaptureSemantics& semantics, size_t* next_stop, std::optional<Break>* reason);
  bool take_snapshot(eval::Outcome& outcome, CaptureSemantics& semantics, Captured* out, size_t* next_stop,
                     std::optional<Break>* reason);
  ExitState exit_of_root(CaptureSemantics& semantics, int unit) const;
  void look_at_depth(CaptureSemantics& semantics, const torch_layer::AmbientState& ambient, Captured* out);
  void tell_memories_apart(const std::vector<torch_layer::InputPlan>& inputs);
  bool finish(SnapshotResult& snapshot, Captured* out, std::optional<Break>* reason);
  Break make_break(const char* id, std::string detail) {
    return Break{find_break(id), std::move(detail), capture_.user_stack()};
  }

  const Request& request_;
  size_t stop_at_;
  const DepthExit* depth_;
  std::optional<SnapshotResult> at_depth_;  // taken there; the frames are gone by the time it is finished
  size_t levels_;
  std::optional<size_t> refused_level_;
  cpython::Frame root_;  // the request's frame, or the caller that the region goes on in
  Capture capture_;
  bool finished_ = false;                                // finish() ends the recording
  std::vector<std::unique_ptr<FrameContent>> contents_;  // of the request's frame and of these callers
  const Ref handled_before_ = handled_now();
};

bool Attempt::admit_stack() {
  cpython::Frame frame = request_.frame;
  for (int i = 0; i < frame.depth(); ++i) {
    PyObject*& value = frame.stack()[i];
    if (!value) continue;
    Ref seen = capture_.admit(value, capture_.root_stack(i));
    if (!seen) return false;
    PyObject* before = value;
    value = seen.release();
    Py_DECREF(before);
  }
  return true;
}

// The local variable holds what it held when the region began, in the form that capture sees.
bool Attempt::is_as_before(size_t slot) const {
  PyObject* before = contents_.back()->local(slot);
  PyObject* now = root_.locals()[slot];
  if (!before || before == now) return before;
  const auto stand_in = capture_.stand_ins.find(before);
  return stand_in != capture_.stand_ins.end() && stand_in->second.get() == now;
}

// One that has something left to do when it dies; the region can't say when that is. Borrowed.
PyObject* Attempt::unfinished_generator() const {
  for (const auto& [generator, weak] : capture_.generators)
    if (weak && PyWeakref_GET_OBJECT(weak.get()) == generator && cpython::acts_when_closed(generator)) return generator;
  return nullptr;
}

// Generators of the attempt end with it: while a break is pending, their frames are left without running a handler.
void Attempt::drop_generators() {
  capture_.pending = make_break("unrebuildable", "generator");
  PyErr_Clear();  // frames in the traceback may be all that holds one
  for (const auto& [generator, weak] : capture_.generators) {
    if (!weak || PyWeakref_GET_OBJECT(weak.get()) != generator || !cpython::is_suspended(generator)) continue;
    const Ref hold = Ref::borrow(generator);
    Ref closed = Ref::steal(PyObject_CallMethod(generator, "close", nullptr));
    PyErr_Clear();
  }
  capture_.pending.reset();
}

// Python errors and breaks inside a root instruction: the region must end before it.
bool Attempt::classify(eval::Outcome& outcome, CaptureSemantics& semantics, size_t* next_stop,
                       std::optional<Break>* reason) {
  const size_t executed = semantics.root_instructions();
  if (capture_.pending) {
    *reason = std::move(capture_.pending);
    capture_.pending.reset();
    *next_stop = executed ? executed - 1 : 0;
    return false;
  }
  if (outcome.exit == eval::Exit::Raised) {
    *reason = make_break("raises", pending_words());
    note_raise(capture_);
    capture_.left = std::move(capture_.raised);
    if (capture_.left.places.size() > 1) (*reason)->stack = lines_of(capture_.left.places);
    *next_stop = executed ? executed - 1 : 0;
    return false;
  }
  return outcome.exit == eval::Exit::Returned || outcome.exit == eval::Exit::Stopped;
}

ExitState Attempt::exit_of_root(CaptureSemantics& semantics, int unit) const {
  ExitState exit;
  cpython::Frame frame = root_;
  std::vector<bool>& touched = semantics.touched();
  touched.resize(static_cast<size_t>(frame.local_count()), false);
  exit.locals.assign(frame.locals(), frame.locals() + frame.local_count());
  exit.stack.assign(frame.stack(), frame.stack() + frame.depth());
  if (!cpython::looks_at_locals(frame.code())) exit.live = cpython::live_at(frame.code(), unit);
  for (size_t i = 0; i < touched.size(); ++i) exit.untouched.push_back(!touched[i] || is_as_before(i));
  return exit;
}

// The frames stand where the region is to end inside of inlined calls. Whatever is in the way leaves it without a
// snapshot.
void Attempt::look_at_depth(CaptureSemantics& semantics, const torch_layer::AmbientState& ambient, Captured* out) {
  const bool handles_other = handled_now().get() != handled_before_.get();
  if (stands_at(capture_, *depth_) && capture_.open_levels.empty() && !handles_other && !unfinished_generator()) {
    if (ambient.unchanged()) capture_.ambient_calls.clear();
    ExitState exit = exit_of_root(semantics, depth_->places[0].unit);
    out->inner.clear();
    for (size_t i = 1; i < depth_->entered; ++i) {
      cpython::Frame frame = capture_.standing[i].frame;
      InnerExit inner;
      inner.locals.assign(frame.locals(), frame.locals() + frame.local_count());
      inner.stack.assign(frame.stack(), frame.stack() + frame.depth());
      if (!cpython::looks_at_locals(frame.code())) inner.live = cpython::live_at(frame.code(), depth_->places[i].unit);
      exit.inner.push_back(std::move(inner));
      out->inner.push_back(depth_->places[i]);
    }
    at_depth_ = snapshot(capture_, exit);
    for (PyObject* output : at_depth_->tensor_outputs) at_depth_->keep.push_back(Ref::borrow(output));
    if (!at_depth_->unrebuildable.empty()) at_depth_.reset();
  }
  break_here(capture_, "unrebuildable", "inlined call");
}

bool Attempt::take_snapshot(eval::Outcome& outcome, CaptureSemantics& semantics, Captured* out, size_t* next_stop,
                            std::optional<Break>* reason) {
  if (!capture_.open_levels.empty()) {
    *reason = make_break("unrebuildable", "level of torch.func");
    *next_stop = capture_.open_levels.front() - 1;
    return false;
  }
  if (PyObject* generator = unfinished_generator()) {
    *reason = make_break("unrebuildable", "generator");
    const size_t born = semantics.born_at(generator);
    const size_t executed = semantics.root_instructions();
    *next_stop = born && born < executed ? born : (executed ? executed - 1 : 0);
    return false;
  }
  ExitState exit;
  out->returns = outcome.exit == eval::Exit::Returned;
  out->exit_unit = outcome.unit;
  if (out->returns)
    exit.result = outcome.value.get();
  else
    exit = exit_of_root(semantics, outcome.unit);
  const Ref handled = handled_now();
  exit.handled = handled.get();
  exit.handles_other = handled.get() != handled_before_.get();
  // The handler that is being left for goes on with what was handled before it.
  if (exit.handles_other && !handled_before_) guard_nothing_handled(capture_);
  SnapshotResult result = snapshot(capture_, exit);
  if (!result.unrebuildable.empty()) {
    *reason = make_break("unrebuildable", result.unrebuildable);
    const size_t born = semantics.born_at(result.culprit);
    const size_t executed = semantics.root_instructions();
    *next_stop = born && born < executed ? born : (executed ? executed - 1 : 0);
    return false;
  }
  if (!finish(result, out, reason)) {
    *next_stop = semantics.root_instructions() / 2;  // where it went wrong is not known
    return false;
  }
  return true;
}

// A tensor that is written to must not share its memory with another input, as it did not here.
void Attempt::tell_memories_apart(const std::vector<torch_layer::InputPlan>& inputs) {
  std::vector<PyObject*> tensors(inputs.size(), nullptr);
  for (const auto& [tensor, fake] : capture_.stand_ins)
    if (const std::optional<int> primal = capture_.tracer->primal_of(fake.get()))
      tensors[static_cast<size_t>(*primal)] = tensor;
  std::vector<ir::SymbolId> written, others;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].number) continue;
    GL_CHECK(tensors[i], "a primal without a tensor");
    const ir::Sym memory = capture_.shapes.new_symbol(torch_layer::memory_of(tensors[i]), "m" + std::to_string(i),
                                                      std::numeric_limits<int64_t>::min() / 4);
    std::vector<ir::SymbolId> ids;
    memory.collect(&ids);
    capture_.guards.add_check(capture_.primal_origins[i], torch_layer::memory_check(ids.front()));
    (inputs[i].mutated_data ? written : others).push_back(ids.front());
  }
  capture_.guards.add_distinct_symbols(std::move(written), std::move(others));
}

bool Attempt::finish(SnapshotResult& result, Captured* out, std::optional<Break>* reason) {
  out->graph_calls = capture_.tracer->call_count();
  finished_ = true;
  const size_t acts = acts_so_far(capture_);
  capture_.deriving = true;
  std::unique_ptr<torch_layer::Traced> traced = capture_.tracer->finish(result.tensor_outputs);
  // What was done since is in no recipe.
  if (traced && acts_so_far(capture_) != acts) traced->refuse = "deriving its backward shows or changes something";
  if (!traced || capture_.pending || !traced->refuse.empty()) {
    std::string words = traced ? traced->refuse : "deriving the backward graph failed";
    if (capture_.pending) words = capture_.pending->sentence();
    capture_.pending.reset();
    PyErr_Clear();
    *reason = make_break("internal_recording", words);
    return false;
  }
  if (!may_rely(capture_, *traced)) {
    *reason = make_break("internal_recording", "an expectation");
    return false;
  }
  out->expects = torch_layer::has_expectations(*traced->joint);
  for (int primal : capture_.weights) traced->inputs[static_cast<size_t>(primal)].weight = true;
  bool mutates = false;
  const std::vector<torch_layer::InputPlan> inputs = traced->inputs;
  for (const torch_layer::InputPlan& input : inputs) mutates |= input.mutated_data || input.mutated_metadata;
  if (!result.tensor_outputs.empty() || mutates || traced->acts || capture_.scouted) out->traced = std::move(*traced);
  if (mutates && inputs.size() > 1) tell_memories_apart(inputs);
  for (const ir::SymGuard& guard : capture_.shapes.guards()) capture_.guards.add_symbolic(guard);
  out->primals = capture_.primal_origins.size();
  out->recipe = std::move(result.recipe);
  cpython::HookScope nobody(nullptr);  // hashes of keys
  out->guards = std::make_unique<guards::GuardTree>(std::move(capture_.guards), std::move(result.fetches),
                                                    capture_.shapes.symbol_count(), request_.frame.code());
  return true;
}

// Behind its return the region goes on in the caller, where that is asked for.
eval::Outcome Attempt::run_root(CaptureSemantics& semantics, Captured* out) {
  eval::Outcome outcome = eval::Evaluator::run(root_, semantics, false);
  while (outcome.exit == eval::Exit::Returned && !capture_.pending && out->left.size() < levels_) {
    const size_t level = out->left.size();
    const cpython::Frame caller = request_.callers->frames[level];
    out->left.push_back({Ref::borrow(reinterpret_cast<PyObject*>(root_.code())), outcome.unit, capture_.instructions});
    out->callers.push_back({Ref::borrow(reinterpret_cast<PyObject*>(caller.code())), caller.executing(), 0});
    contents_.push_back(std::make_unique<FrameContent>(caller));
    root_ = caller;
    semantics.move_root(caller);
    if (!go_on_in(capture_, *request_.callers, level, outcome.value.get())) {
      refused_level_ = level;
      if (!capture_.pending) break_here(capture_, "unrebuildable", "frame");
      break;
    }
    cpython::RelinkFrame again(caller);
    outcome = eval::Evaluator::run(caller, semantics, false);
  }
  return outcome;
}

bool Attempt::run(Captured* out, size_t* next_stop, std::optional<Break>* reason) {
  struct PutBack {  // inside of what the evaluation needs
    std::vector<std::unique_ptr<FrameContent>>& contents;
    ~PutBack() {
      while (!contents.empty()) contents.pop_back();
    }
  } put_back{contents_};
  contents_.push_back(std::make_unique<FrameContent>(root_));
  out->left.clear();
  out->callers.clear();
  HandledException handled;
  capture_.handled_before = handled_before_ ? handled_before_.get() : Py_None;
  cpython::Frame frame = request_.frame;
  capture_.limits = request_.limits;
  capture_.recorded = request_.recorded;
  capture_.wrapped_function = request_.wrapped_function;
  capture_.tracer = torch_layer::Tracer::create(
      &capture_.shapes, [this](const char* kind, const std::string& detail) { break_here(capture_, kind, detail); },
      [this] { return capture_.where(); },
      [](const std::function<void()>& run) {
        cpython::HookScope nobody(nullptr);
        run();
      });
  if (request_.calls) capture_.tracer->record_calls([this] { return capture_.user_stack(); });
  capture_.tracer->on_fixed = [this](int primal) { capture_.fix_float(primal); };
  capture_.guards.add_global(torch_layer::ambient_check());
  CurrentCapture current(&capture_);
  NoCollector no_collector;
  torch_layer::AmbientState ambient;
  if (PyObject* function = frame.function())
    capture_.objects.add(function, capture_.origins().root(OriginKind::Function));
  capture_.frames.push_back(frame);
  capture_.begins_frame = frame.position() == 0;
  capture_.drop_copies = [this](cpython::Dropping& dropping) {
    for (const auto& content : contents_) content->drop(dropping);
  };
  CaptureSemantics semantics(capture_, frame.raw(), stop_at_);
  InlineHandler handler(capture_, semantics);
  capture_.tracer->start();
  bool done = false;
  {
    cpython::HookScope hook(&handler);
    if (PyObject* function = frame.function()) know_function(capture_, function);
    PyErr_Clear();
    eval::Outcome outcome{eval::Exit::Stopped, Ref(), frame.position()};
    if (depth_) semantics.stop_at_depth(depth_->instruction(), [&] { look_at_depth(semantics, ambient, out); });
    if (!capture_.pending && admit_stack()) outcome = run_root(semantics, out);
    if (at_depth_) {
      PyErr_Clear();
      capture_.pending.reset();
      out->instructions = semantics.root_instructions();
      out->evaluated = std::move(capture_.evaluated);
      out->returns = false;
      out->exit_unit = depth_->places[0].unit;
      done = finish(*at_depth_, out, reason);
    } else if (classify(outcome, semantics, next_stop, reason)) {
      PyErr_Clear();
      if (ambient.unchanged()) capture_.ambient_calls.clear();
      out->instructions = semantics.root_instructions();
      out->evaluated = std::move(capture_.evaluated);
      done = take_snapshot(outcome, semantics, out, next_stop, reason);
    }
    drop_generators();
  }
  while (capture_.tracer->end_inference());
  if (!finished_) capture_.tracer->stop();
  if (capture_.internal_error) throw InternalError(*capture_.internal_error);
  return done;
}

}  // namespace

Capture* current_capture() { return g_current; }

Captured capture_region(const Request& request) {
  const auto begin = std::chrono::steady_clock::now();
  Captured captured;
  captured.begin_unit = request.frame.position();
  captured.exit_unit = captured.begin_unit;
  size_t stop = kNoStop;
  std::optional<Break> reason;
  DepthExit left;  // where `reason` is
  size_t depth_tries = 0;
  size_t levels = request.callers ? request.callers->frames.size() : 0;
  for (;;) {
    ++captured.attempts;
    size_t next_stop = 0;
    std::optional<Break> why;
    // Without tensor work in front of the call nothing would be won: it runs for real and is captured on its own.
    const bool at_depth = depth_tries > 0 && left.entered > 1 && left.calls > 0;
    Attempt attempt(request, at_depth ? kNoStop : stop, at_depth ? &left : nullptr, levels);
    const bool done = attempt.run(&captured, &next_stop, &why);
    // Without tensor work a region in several frames wins nothing.
    if (done && (captured.traced || captured.left.empty())) break;
    if (attempt.again()) continue;
    if (done || attempt.refused_level()) {
      levels = done ? 0 : *attempt.refused_level();
      continue;
    }
    if (at_depth) {
      captured.inner.clear();
      --depth_tries;
      --left.entered;
      continue;
    }
    if (!reason || (why && std::string(why->row->id) != "unrebuildable")) {
      reason = std::move(why);
      left = std::move(attempt.left());
      depth_tries = kDepthTries;
    }
    // Each retry ends earlier; an empty region is left to the real interpreter.
    GL_CHECK(next_stop < stop, "a retry of a capture did not end earlier");
    stop = next_stop;
    if (stop == 0) {
      captured.instructions = 0;
      captured.left.clear();
      captured.callers.clear();
      captured.returns = false;
      captured.exit_unit = captured.begin_unit;
      captured.evaluated.clear();
      captured.guards.reset();
      captured.traced.reset();
      break;
    }
  }
  captured.reason = std::move(reason);
  captured.met = std::move(left.places);
  captured.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return captured;
}

}  // namespace graphlift::capture
