// Owns: see checkpoints.h.
#include "capture/checkpoints.h"

#include <algorithm>

#include "capture/calls.h"
#include "capture/deferred.h"
#include "capture/dynamo_calls.h"
#include "cpython/imported.h"

namespace graphlift::capture {

namespace {

// They ask for the mode to restore it, or belong to the checkpoint itself.
constexpr const char* kMayAsk[] = {"torch.autograd.grad_mode", "torch.utils.checkpoint", "graphlift.substitutes"};

bool is_checkpoint(PyObject* function) { return describe(function) == "torch.utils.checkpoint.CheckpointFunction"; }

}  // namespace

Ref reentrant_checkpoint(Capture& c, const CallArgs& call) {
  if (call.nargs < 3 || call.kwnames || !is_checkpoint(call.args[0])) return Ref();
  const Ref substitute = cpython::imported("graphlift.substitutes", "checkpoint_with_reentrant");
  Ref result =
      substitute ? graphlift::capture::call(c, substitute.get(), call.args + 1, call.nargs - 1, nullptr) : Ref();
  return result.get() == Py_NotImplemented ? Ref() : std::move(result);
}

bool keeps_random_state(const CallArgs& call) {
  return call.nargs > 2 && is_checkpoint(call.args[0]) && call.args[2] == Py_True;
}

bool differs_in_backward(const Capture& c) {
  if (std::none_of(c.checkpoints.begin(), c.checkpoints.end(), [](const auto& open) { return open.reentrant; }))
    return false;
  return std::none_of(std::begin(kMayAsk), std::end(kMayAsk), [&](const char* module) { return in_module(c, module); });
}

// Where the program itself turned gradients off, they are off both times.
Ref grad_mode_call(Capture& c, const CallArgs& call) {
  Ref enabled =
      Ref::steal(PyObject_Vectorcall(call.callable, call.args, static_cast<size_t>(call.nargs), call.kwnames));
  if (enabled.get() == Py_True && differs_in_backward(c)) return break_here(c, "checkpoint_asks", "grad mode");
  return enabled;
}

Ref begin_checkpoint_call(Capture& c, const CallArgs& call) {
  if (c.tracer->calls()) c.tracer->calls()->refuse("torch.utils.checkpoint");
  c.tracer->begin_checkpoint();
  c.checkpoints.push_back({acts_so_far(c), call.nargs > 0 && call.args[0] == Py_True});
  return Ref::borrow(Py_None);
}

Ref end_checkpoint_call(Capture& c, const CallArgs&) {
  c.tracer->end_checkpoint();
  const size_t before = c.checkpoints.back().acts;
  c.checkpoints.pop_back();
  if (acts_so_far(c) != before) return break_here(c, "checkpoint_acts");
  return Ref::borrow(Py_None);
}

}  // namespace graphlift::capture
