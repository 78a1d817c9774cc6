// Owns: the loop over instructions and what happens after an exception.
#include "eval/evaluator.h"

#include "cpython/exception.h"
#include "cpython/hook.h"
#include "cpython/recursion.h"
#include "cpython/unwind.h"
#include "eval/activation.h"

namespace graphlift::eval {
namespace {

using cpython::Instruction;
using Handler = Flow (*)(Activation&, int);

constexpr Handler kHandlers[] = {
#define MICRO(name, effect, jump_effect) do_##name,
#include "cpython/micro_ops.def"
#undef MICRO
};

uint64_t evaluated = 0;

Flow execute(Activation& a, const Instruction& instruction) {
  a.kw_names = nullptr;
  Flow flow = Flow::Next;
  for (int i = instruction.micro_begin; i < instruction.micro_end && flow == Flow::Next; ++i) {
    const cpython::MicroOp& micro = a.decoded.micros[static_cast<size_t>(i)];
    flow = kHandlers[static_cast<size_t>(micro.micro)](a, micro.arg);
  }
  return flow;
}

// The loop's state between instructions: at which one to go on, unless `done`.
class Loop {
 public:
  Loop(cpython::Frame frame, Semantics& semantics) : a_(frame, semantics) {}

  Outcome run(bool raising, bool once) {
    int unit = a_.frame.position();
    if (raising) {
      const Instruction& raised = a_.decoded.at_unit(unit - 1);
      a_.frame.set_executing(raised.own_unit);
      unit = after_error(raised, Flow::Error);
    }
    while (!done_) {
      const Instruction& instruction = a_.decoded.at_unit(unit);
      a_.frame.set_position(unit);
      if (!once && a_.semantics.before(a_.frame, unit) == Step::Stop) return {Exit::Stopped, Ref(), unit};
      unit = step(instruction);
      if (done_ || !(once || a_.observed)) continue;
      a_.frame.set_position(unit);
      return {a_.observed ? Exit::Yielded : Exit::Stopped, Ref(), unit};
    }
    return std::move(outcome_);
  }

 private:
  // Executes one instruction and returns the unit to go on at.
  int step(const Instruction& instruction) {
    ++evaluated;
    a_.frame.set_executing(instruction.own_unit);
    switch (const Flow flow = execute(a_, instruction)) {
      case Flow::Next:
        return instruction.next;
      case Flow::Jump:
        return a_.jump;
      case Flow::Return:
        return finish({Exit::Returned, std::move(a_.result), instruction.unit});
      case Flow::Leave:
        a_.frame.set_position(instruction.unit);
        return finish({Exit::Yielded, std::move(a_.result), instruction.unit});
      default:
        return after_error(instruction, flow);
    }
  }

  int after_error(const Instruction& instruction, Flow flow) {
    if (a_.semantics.unwinding()) return finish({Exit::Stopped, Ref(), instruction.unit});
    if (!cpython::find_handler(a_.decoded.handlers, instruction.own_unit)) {
      a_.frame.set_executing(instruction.own_unit);
      return finish({Exit::Raised, Ref(), instruction.own_unit});
    }
    if (flow == Flow::Error) cpython::add_traceback(a_.frame);
    cpython::enter_handler(a_.frame, a_.decoded, instruction.own_unit);
    a_.observed = cpython::thread_observed();
    return a_.frame.position();
  }

  int finish(Outcome outcome) {
    outcome_ = std::move(outcome);
    done_ = true;
    return -1;
  }

  Activation a_;
  bool done_ = false;
  Outcome outcome_{Exit::Stopped, Ref(), -1};
};

Outcome run_linked(cpython::Frame frame, Semantics& semantics, bool raising, bool once) {
  cpython::RecursionGuard depth;
  if (!depth.ok()) return {Exit::Raised, Ref(), -1};
  cpython::LinkFrame link(frame);
  return Loop(frame, semantics).run(raising, once);
}

}  // namespace

bool Evaluator::can_run(cpython::Frame frame) { return cpython::decode(frame.code()).runnable; }

Outcome Evaluator::run(cpython::Frame frame, Semantics& semantics, bool raising) {
  return run_linked(frame, semantics, raising, false);
}

Outcome Evaluator::run_one(cpython::Frame frame, Semantics& semantics) {
  return run_linked(frame, semantics, false, true);
}

PyObject* Evaluator::finish(cpython::Frame frame, Outcome outcome) {
  switch (outcome.exit) {
    case Exit::Returned:
      return cpython::leave_by_return(frame, outcome.value.release(), outcome.unit);
    case Exit::Raised:
      return outcome.unit < 0 ? cpython::leave_unwinding(frame) : cpython::leave_to_default(frame, true);
    default:
      outcome.value.reset();
      return PyErr_Occurred() ? cpython::leave_unwinding(frame) : cpython::leave_to_default(frame, false);
  }
}

uint64_t Evaluator::instructions() { return evaluated; }

}  // namespace graphlift::eval
