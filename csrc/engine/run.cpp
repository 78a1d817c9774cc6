// Owns: see run.h.
#include "engine/run.h"

#include <algorithm>
#include <string_view>

#include "base/error.h"
#include "capture/control_flow.h"
#include "capture/root.h"
#include "cpython/decode.h"
#include "engine/compile.h"
#include "engine/compiled_function.h"
#include "engine/report.h"
#include "eval/evaluator.h"
#include "torch/ambient_state.h"

namespace graphlift::engine {

using torch_layer::Ran;

namespace {

eval::Semantics& real_semantics() {
  static eval::Semantics semantics;
  return semantics;
}

guards::Roots roots_of(cpython::Frame frame, const capture::Callers& callers) {
  return {frame.locals(), frame.stack(), frame.globals(), frame.builtins(), frame.function(), callers.held.data()};
}

// The callers stand in the calls that the region was captured in.
bool stands_in(const Region& region, const Around* around) {
  for (const capture::Place& place : region.callers) {
    if (!around || reinterpret_cast<PyObject*>(around->frame.code()) != place.code.get()) return false;
    if (around->frame.executing() != place.unit) return false;
    around = around->outer;
  }
  return true;
}

void add_callers(const Around* around, size_t count, capture::Callers* callers) {
  for (size_t i = 0; i < count; ++i, around = around->outer)
    if (i >= callers->frames.size()) callers->add(around->frame);
}

PyCodeObject* exit_code(cpython::Frame frame, const Region& region) {
  return region.callers.empty() ? frame.code() : reinterpret_cast<PyCodeObject*>(region.callers.back().code.get());
}

// By region that was captured for such callers: what does not hold.
std::vector<std::string> why_not(cpython::Frame frame, const Around* around, const UnitEntry& at) {
  std::vector<std::string> reasons;
  capture::Callers callers;
  for (const RegionPtr& region : at.regions) {
    if (!region->guards || !stands_in(*region, around)) continue;
    add_callers(around, region->callers.size(), &callers);
    reasons.push_back(region->guards->explain(roots_of(frame, callers)));
  }
  return reasons;
}

// Regions that begin at one instruction and go on in callers. One more is captured for any callers.
constexpr int64_t kRegionsInCallers = 4;

// Which callers a region at this place may go on in: not in a loop, whose rounds share what follows the call, and in
// none once many others led here.
capture::Callers callers_for(cpython::Frame frame, const UnitEntry& at, const Around* around) {
  const auto others = std::count_if(at.regions.begin(), at.regions.end(),
                                    [](const RegionPtr& region) { return !region->callers.empty(); });
  capture::Callers all, callers;
  for (const Around* of = around; of && others < kRegionsInCallers && !capture::is_in_loop(of->frame); of = of->outer)
    all.add(of->frame);
  add_callers(around, all.frames.empty() ? 0 : capture::quiet_levels(frame, all), &callers);
  return callers;
}

// In how many callers regions at this place may go on now.
size_t quiet_callers(cpython::Frame frame, const UnitEntry& at, const Around* around, capture::Callers* callers) {
  size_t most = 0;
  for (const RegionPtr& region : at.regions)
    if (stands_in(*region, around)) most = std::max(most, region->callers.size());
  if (most == 0) return 0;
  add_callers(around, most, callers);
  return capture::quiet_levels(frame, *callers);
}

void set_handled(const capture::Recipe& recipe, const Exit& exit) {
  if (recipe.handled == capture::Recipe::kKeep) return;
  const bool none = recipe.handled == capture::Recipe::kEmpty;
  PyErr_SetHandledException(none ? nullptr : exit.made[static_cast<size_t>(recipe.handled)].get());
}

// `except ... as error` unbinds its variable, or exception and frame would keep each other. In a region that returns no
// one did so on the frame itself.
void drop_exceptions(cpython::Frame frame) {
  for (int i = 0; i < frame.local_count(); ++i)
    if (PyObject*& slot = frame.locals()[i]; slot && PyExceptionInstance_Check(slot)) Py_CLEAR(slot);
}

// What the frame holds at the region's exit.
void write_back(cpython::Frame frame, const std::vector<int>& local_nodes, const std::vector<int>& stack_nodes,
                const std::vector<Ref>& made, int unit) {
  std::vector<Ref> dropped;
  for (size_t i = 0; i < local_nodes.size(); ++i) {
    const int node = local_nodes[i];
    if (node == capture::Recipe::kKeep) continue;
    PyObject*& slot = frame.locals()[i];
    dropped.push_back(Ref::steal(slot));
    slot = node == capture::Recipe::kEmpty ? nullptr : Py_NewRef(made[static_cast<size_t>(node)].get());
  }
  const int before = frame.depth();
  const int after = static_cast<int>(stack_nodes.size());
  PyObject** stack = frame.stack();
  std::vector<PyObject*> values;
  for (int node : stack_nodes)
    values.push_back(node == capture::Recipe::kEmpty ? nullptr : Py_NewRef(made[static_cast<size_t>(node)].get()));
  for (int i = 0; i < before; ++i) dropped.push_back(Ref::steal(stack[i]));
  for (int i = 0; i < after; ++i) stack[i] = values[static_cast<size_t>(i)];
  frame.set_depth(after);
  frame.set_position(unit);
  cpython::fill_free_variables(
      frame);  // whoever looks at the frame expects them, also those that no one reads any more
}

PyObject* leave_with_error(cpython::Frame frame, int unit) {
  cpython::fill_free_variables(frame);  // whoever looks at the frame in the traceback expects them
  frame.set_executing(unit);
  return cpython::leave_to_default(frame, true);
}

// The graph raised an error of the program's: the program itself runs, and raises it, or handles it, at its own line.
PyObject* meet_error(cpython::Frame frame) {
  leave_error_to_program(frame.code());
  cpython::HookScope nobody(nullptr);
  return cpython::leave_to_default(frame, false);
}

bool at_real_unit(cpython::Frame frame, int unit) { return frame.position() == unit; }

// It ends where torch.cond or torch.while_loop reads a predicate, or in what stands in their place.
bool is_of_control_flow(cpython::Frame frame, const Region& region) {
  const std::string_view id = region.reason->row->id;
  return id == capture::kControlFlowBreak || (id == "loop_boundary" && is_substitute(frame.code()));
}

// What the region began can't be taken back: a late internal error is raised. Of others callers go on in eager.
Ran run_executable(const Region& region, PyObject* const* fetched, const int64_t* symbols, PyObject** tensors) {
  cpython::HookScope nobody(nullptr);  // a custom operator's Python kernel is the operator's own
  try {
    return region.executable ? region.executable->run(fetched, symbols, tensors) : Ran::Done;
  } catch (const LateInternalError& error) {
    raise_internal_error(error.what());
    return Ran::Failed;
  }
}

}  // namespace

Ran run_region(const Region& region, PyObject* const* fetched, const int64_t* symbols, Exit* exit) {
  Objects tensors(region.outputs);
  if (const Ran ran = run_executable(region, fetched, symbols, tensors.data()); ran != Ran::Done) return ran;
  if (region.ready) {
    exit->result = Ref::borrow(region.ready->get(fetched, tensors.data()));
    return Ran::Done;
  }
  cpython::HookScope nobody(nullptr);  // what is deferred is no part of a region
  if (!capture::run_recipe(region.recipe, fetched, tensors.data(), symbols, &exit->made)) return Ran::Failed;
  if (region.returns) exit->result = exit->made[static_cast<size_t>(region.recipe.result)];
  return Ran::Done;
}

PyObject* Runner::evaluate(cpython::Frame frame, bool throwing, bool* handled) {
  PyCodeObject* code = frame.code();
  const Around* around = std::exchange(around_, nullptr);
  *handled = !throwing && is_reentered(frame);
  if (*handled) return reenter(frame, around);
  if (throwing || !is_plain_function(code) || frame.is_generator()) return nullptr;
  PyObject* function = frame.function();
  // Inside of a transform of torch.func that runs for real, tensors are none that a region can take.
  const bool wrapped = torch_layer::in_transform() && !owner_.config.fullgraph;
  // Between an exit and the frame that gets it, what runs code is what dies meanwhile.
  const bool between = reentry_ || returning_;
  if ((function && is_disabled(function)) || is_left_alone(code) || wrapped || between) {
    *handled = true;
    cpython::HookScope nobody(nullptr);
    return cpython::leave_to_default(frame, false);
  }
  if (PyObject* in_place = function ? capture::control_flow_at(code, 0, function) : nullptr) {  // called by C code
    *handled = true;
    return run_in_place(frame, in_place);
  }
  const bool root = root_code_ == code;
  if (!root && is_skipped(code)) return nullptr;
  CodeEntry& entry = owner_.entry(code);
  if (entry.given_up) return nullptr;
  *handled = true;
  if (around && !capture::entered_at_once(around->frame, frame)) around = nullptr;
  return run_frame(frame, entry, around, false);
}

bool Runner::is_reentered(cpython::Frame frame) const {
  if (!reentry_) return false;
  const Ref& code = reentry_->region->inner[reentry_->next].code;
  return reinterpret_cast<PyObject*>(frame.code()) == code.get();
}

// A frame that the region had entered: it is as the region left it, and goes on from there.
PyObject* Runner::reenter(cpython::Frame frame, const Around* around) {
  {
    Reentry all = std::move(*reentry_);
    reentry_.reset();  // what dies meanwhile may run code
    const capture::FrameRecipe& recipe = all.region->recipe.inner[all.next];
    write_back(frame, recipe.locals, recipe.stack, all.made, all.region->inner[all.next].unit);
    if (++all.next < all.region->inner.size()) reentry_ = std::move(all);
  }  // from here on the frames alone hold what was made
  return run_frame(frame, owner_.entry(frame.code()), around, true);
}

// What stands in the place of the frame's function gives what it returns.
PyObject* Runner::run_in_place(cpython::Frame frame, PyObject* function) {
  const std::vector<PyObject*> args(frame.locals(), frame.locals() + frame.code()->co_argcount);
  Ref result;
  {
    cpython::HookScope hook(this);
    result = Ref::steal(PyObject_Vectorcall(function, args.data(), args.size(), nullptr));
  }
  if (!result) return cpython::leave_unwinding(frame);
  const auto& all = cpython::decode(frame.code()).instructions;
  const auto returns = std::find_if(all.begin(), all.end(), [](const cpython::Instruction& instruction) {
    return std::string_view(instruction.row->name) == "RETURN_VALUE";
  });
  GL_CHECK(returns != all.end(), "a function without a return");
  return cpython::leave_by_return(frame, result.release(), returns->unit);
}

// The instruction at a region's exit, for real.
eval::Outcome Runner::run_exit(cpython::Frame frame, const Around* outer) {
  const bool reenters = reentry_.has_value();
  const Around around{frame, outer};
  around_ = &around;
  capture::replace_control_flow(frame);
  eval::Outcome outcome = eval::Evaluator::run_one(frame, real_semantics());
  around_ = nullptr;
  if (!reenters || !reentry_) return outcome;
  reentry_.reset();
  if (outcome.exit == eval::Exit::Raised || PyErr_Occurred()) return outcome;
  raise_internal_error("a call that a region had entered was not made again");
  return {eval::Exit::Raised, Ref(), -1};
}

// The exit's instruction. A region of a frame that it entered again may have gone on in this frame. True: the frame is
// left, with `result`.
bool Runner::pass_exit(cpython::Frame frame, const Around* around, PyObject** result) {
  for (;;) {
    eval::Outcome outcome = run_exit(frame, around);
    const bool returned = returning_ && returning_->to == frame.raw();
    if (outcome.exit != eval::Exit::Stopped) {
      if (returned) returning_.reset();
      *result = eval::Evaluator::finish(frame, std::move(outcome));
      return true;
    }
    if (!returned) return false;
    Returning rest = std::move(*returning_);
    returning_.reset();
    if (rest.next + 1 < rest.region->callers.size()) {
      ++rest.next;
      rest.to = around->frame.raw();
      *result = leave_for_caller(frame, std::move(rest));
      return true;
    }
    if (follow(frame, rest.region, std::move(rest.exit), result)) return true;
  }
}

// The frame gets what it holds at the region's exit. True: it is left by that, with `result`.
bool Runner::follow(cpython::Frame frame, const RegionPtr& region, Exit exit, PyObject** result) {
  set_handled(region->recipe, exit);
  if (region->returns) {
    drop_exceptions(frame);
    *result = cpython::leave_by_return(frame, exit.result.release(), region->exit_unit);
    return true;
  }
  write_back(frame, region->recipe.locals, region->recipe.stack, exit.made, region->exit_unit);
  if (!region->inner.empty()) reentry_ = Reentry{region, std::move(exit.made)};
  return false;
}

// What the frame returns is nothing: the region has gone on in its caller.
PyObject* Runner::leave_for_caller(cpython::Frame frame, Returning rest) {
  const int unit = rest.region->left[rest.next].unit;
  returning_ = std::move(rest);
  drop_exceptions(frame);
  return cpython::leave_by_return(frame, Py_NewRef(Py_None), unit);
}

RegionPtr Runner::find(cpython::Frame frame, const Around* around, UnitEntry& at, Found* found) {
  const size_t quiet = quiet_callers(frame, at, around, &found->callers);  // before anything is fetched
  for (const RegionPtr& region : at.regions) {
    if (region->callers.size() > quiet || !stands_in(*region, around)) continue;
    if (!region->guards) return region;
    found->prepare(region->guards->fetch_count(), region->guards->symbol_count());
    const guards::Roots roots = roots_of(frame, found->callers);
    if (region->guards->check(roots, found->fetched->data(), found->symbols->data())) return region;
  }
  return nullptr;
}

RegionPtr Runner::make(cpython::Frame frame, const Around* around, CodeEntry& entry, UnitEntry& at) {
  const int unit = frame.position();
  const std::vector<std::string> reasons = why_not(frame, around, at);
  if (!reasons.empty()) report_recompile(frame.code(), unit, reasons);
  const capture::Callers callers = callers_for(frame, at, around);
  capture::Request request{
      frame, &callers, owner_.config.dynamic, &at.seen, wrapped_function, {}, owner_.config.backend->wants_calls()};
  const std::string& mode = owner_.config.how.mode;
  request.recorded = !owner_.config.fullgraph && (mode == "reduce-overhead" || mode == "max-autotune");
  capture::Captured captured = capture::capture_region(request);
  counters().captures += static_cast<uint64_t>(captured.attempts);
  capture::Captured facts;
  facts.seconds = captured.seconds;
  facts.evaluated = std::move(captured.evaluated);
  facts.met = std::move(captured.met);
  RegionPtr region = compile_region(owner_.config, std::move(captured));
  // Another thread may have made one for this call meanwhile: the GIL is given up while code is compiled.
  Found found;
  if (RegionPtr other = find(frame, around, at, &found)) return other;
  at.regions.push_back(region);
  ++entry.regions;
  report_region(frame.code(), *region, facts);
  report_break(exit_code(frame, *region), *region, owner_.is_told(*region, facts.met));
  return region;
}

PyObject* Runner::give_up(cpython::Frame frame, const Around* around, CodeEntry& entry, UnitEntry& at) {
  if (!entry.given_up) {
    entry.given_up = true;
    const std::vector<std::string> reasons = why_not(frame, around, at);
    report_limit(frame.code(), at.regions.size(), reasons.empty() ? "too many regions" : reasons.back());
  }
  return cpython::leave_to_default(frame, false);
}

// An internal error: the frame goes on in eager from where it is, or raises where errors are to be seen.
PyObject* Runner::give_up_on_error(cpython::Frame frame, CodeEntry& entry, int unit, const std::string& words) {
  entry.given_up = true;
  if (!report_internal_error(frame.code(), words)) return leave_with_error(frame, unit);
  return cpython::leave_to_default(frame, false);
}

// Real instructions until control reaches `unit` or leaves the frame. True: it is there.
bool Runner::run_plain(cpython::Frame frame, int unit, eval::Outcome* outcome) {
  while (!at_real_unit(frame, unit)) {
    *outcome = eval::Evaluator::run_one(frame, real_semantics());
    if (outcome->exit != eval::Exit::Stopped) return false;
  }
  return true;
}

PyObject* Runner::run_frame(cpython::Frame frame, CodeEntry& entry, const Around* around, bool reentered) {
  cpython::HookScope hook(this);
  PyObject* result = nullptr;
  if (reentered) {
    if (pass_exit(frame, around, &result)) return result;
    if (entry.given_up || is_skipped(frame.code())) return cpython::leave_to_default(frame, false);
  }
  for (;;) {
    // The frame itself has opened a level: what is left of it runs in eager.
    if (torch_layer::in_transform() && !owner_.config.fullgraph) return cpython::leave_to_default(frame, false);
    UnitEntry& at = entry.units[frame.position()];
    const int unit = frame.position();
    Found found;
    RegionPtr region = find(frame, around, at, &found);
    if (!region) {
      if (at.regions.size() >= owner_.config.recompile_limit || entry.regions >= owner_.config.regions_per_code)
        return give_up(frame, around, entry, at);
      try {
        region = make(frame, around, entry, at);
      } catch (const InternalError& error) {
        return give_up_on_error(frame, entry, unit, error.what());
      }
      if (owner_.config.fullgraph && region->reason && !region->returns && !is_of_control_flow(frame, *region))
        return refuse_break(frame, *region);
      if (region->guards) {
        found.prepare(region->guards->fetch_count(), region->guards->symbol_count());
        add_callers(around, region->callers.size(), &found.callers);
        const guards::Roots roots = roots_of(frame, found.callers);
        if (!region->guards->check(roots, found.fetched->data(), found.symbols->data()))
          return give_up_on_error(frame, entry, unit,
                                  "a new region's guards don't hold: " + region->guards->explain(roots));
      }
    } else {
      ++counters().hits;
    }
    ++region->hits;
    if (region->kind == Region::Kind::Graph) {
      Exit exit;
      try {
        const Ran ran = run_region(*region, found.fetched->data(), found.symbols->data(), &exit);
        if (ran == Ran::Untouched) {
          owner_.entry(frame.code()).units[unit].note_stop(region);  // tables may have changed while it ran
          return meet_error(frame);
        }
        if (ran == Ran::Failed) return leave_with_error(frame, unit);
      } catch (const InternalError& error) {
        return give_up_on_error(frame, entry, unit, error.what());
      }
      found.release();  // frames alone hold what they hold, or it would not die with them
      if (!region->callers.empty()) return leave_for_caller(frame, {region, std::move(exit), around->frame.raw()});
      if (follow(frame, region, std::move(exit), &result)) return result;
    } else if (region->kind == Region::Kind::Plain) {
      found.release();
      eval::Outcome outcome{eval::Exit::Stopped, Ref(), unit};
      if (!run_plain(frame, region->exit_unit, &outcome)) return eval::Evaluator::finish(frame, std::move(outcome));
    }
    found.release();
    if (pass_exit(frame, around, &result)) return result;
  }
}

PyObject* Runner::refuse_break(cpython::Frame frame, const Region& region) {
  const std::string words = "fullgraph=True, but the graph breaks: " + region.reason->message();
  raise_graph_break(words);
  return cpython::leave_unwinding(frame);
}

}  // namespace graphlift::engine
