// Owns: tests of the evaluator's contract: the state of the frame after each exit.
#include "eval/evaluator.h"

#include <gtest/gtest.h>

#include <functional>
#include <vector>

#include "cpython/decode.h"
#include "cpython/hook.h"
#include "python_code.h"

namespace graphlift::eval {
namespace {

using cpython::Frame;

struct Watching : Semantics {
  std::vector<int> units;
  int stop_at = -1;
  bool break_in_binary = false;
  bool broke = false;

  Step before(Frame&, int unit) override {
    units.push_back(unit);
    return unit == stop_at ? Step::Stop : Step::Go;
  }
  bool unwinding() override { return broke; }
  Ref binary(int op, PyObject* left, PyObject* right) override {
    if (!break_in_binary) return Semantics::binary(op, left, right);
    broke = true;
    PyErr_SetString(PyExc_RuntimeError, "break");
    return Ref();
  }
};

struct Handler : cpython::FrameHandler {
  std::function<PyObject*(Frame, bool)> run;
  PyObject* evaluate(Frame frame, bool throwing, bool*) override { return run(frame, throwing); }
};

Ref call(PyObject* function, std::function<PyObject*(Frame, bool)> run, PyObject* args = nullptr) {
  Handler handler;
  handler.run = std::move(run);
  cpython::HookScope scope(&handler);
  Ref none = Ref::steal(PyTuple_New(0));
  return Ref::steal(PyObject_Call(function, args ? args : none.get(), nullptr));
}

constexpr const char* kSum = "def f(a=3, b=4):\n    c = a * b\n    return [c, a + b]\n";

TEST(Evaluator, ReturnsItsValue) {
  Ref globals = run_module(kSum);
  Watching semantics;
  Ref result = call(get(globals, "f"), [&](Frame frame, bool) {
    Outcome outcome = Evaluator::run(frame, semantics);
    EXPECT_EQ(outcome.exit, Exit::Returned);
    EXPECT_EQ(PyList_GET_SIZE(outcome.value.get()), 2);
    EXPECT_EQ(frame.depth(), 0);
    EXPECT_EQ(PyLong_AsLong(frame.locals()[2]), 12);
    return Evaluator::finish(frame, std::move(outcome));
  });
  EXPECT_TRUE(result);
  EXPECT_EQ(semantics.units.size(), cpython::decode(code_of(globals, "f")).instructions.size());
}

// Stops before every instruction in turn, looks at the state, and goes on: in CPython's evaluator, or in ours.
TEST(Evaluator, StopsExactlyBeforeAnInstruction) {
  Ref globals = run_module(kSum);
  for (const auto& instruction : cpython::decode(code_of(globals, "f")).instructions) {
    for (const bool ours : {false, true}) {
      Watching semantics;
      semantics.stop_at = instruction.unit;
      Ref result = call(get(globals, "f"), [&](Frame frame, bool) {
        Outcome outcome = Evaluator::run(frame, semantics);
        EXPECT_EQ(outcome.exit, Exit::Stopped);
        EXPECT_EQ(outcome.unit, instruction.unit);
        EXPECT_EQ(frame.position(), instruction.unit);
        semantics.stop_at = -1;
        if (ours) outcome = Evaluator::run(frame, semantics);
        return Evaluator::finish(frame, std::move(outcome));
      });
      ASSERT_TRUE(result) << instruction.unit;
      EXPECT_EQ(PyLong_AsLong(PyList_GetItem(result.get(), 0)), 12);
    }
  }
}

TEST(Evaluator, RunOneMovesByOneInstruction) {
  Ref globals = run_module(kSum);
  Watching semantics;
  int steps = 0;
  Ref result = call(get(globals, "f"), [&](Frame frame, bool) {
    Outcome outcome = Evaluator::run_one(frame, semantics);
    for (++steps; outcome.exit == Exit::Stopped; ++steps) {
      EXPECT_EQ(frame.position(), outcome.unit);
      outcome = Evaluator::run_one(frame, semantics);
    }
    EXPECT_EQ(outcome.exit, Exit::Returned);
    return Evaluator::finish(frame, std::move(outcome));
  });
  EXPECT_TRUE(result);
  EXPECT_EQ(steps, static_cast<int>(cpython::decode(code_of(globals, "f")).instructions.size()));
  EXPECT_TRUE(semantics.units.empty());
}

TEST(Evaluator, RaisedLeavesTheExceptionPending) {
  Ref globals = run_module("def f():\n    x = 1\n    return x / 0\n");
  Semantics semantics;
  Ref result = call(get(globals, "f"), [&](Frame frame, bool) {
    Outcome outcome = Evaluator::run(frame, semantics);
    EXPECT_EQ(outcome.exit, Exit::Raised);
    EXPECT_TRUE(PyErr_ExceptionMatches(PyExc_ZeroDivisionError));
    EXPECT_EQ(frame.executing(), outcome.unit);
    EXPECT_EQ(frame.line_of(outcome.unit), 3);
    return Evaluator::finish(frame, std::move(outcome));
  });
  EXPECT_FALSE(result);
  EXPECT_TRUE(PyErr_ExceptionMatches(PyExc_ZeroDivisionError));
  PyErr_Clear();
}

TEST(Evaluator, RunOneEntersTheHandler) {
  Ref globals =
      run_module("def f():\n    try:\n        1 / len([])\n    except ZeroDivisionError:\n        return 5\n");
  Watching semantics;
  const auto& decoded = cpython::decode(code_of(globals, "f"));
  for (const auto& instruction : decoded.instructions) {
    if (instruction.row->name == "BINARY_OP") semantics.stop_at = instruction.unit;
  }
  Ref result = call(get(globals, "f"), [&](Frame frame, bool) {
    Outcome outcome = Evaluator::run(frame, semantics);
    EXPECT_EQ(outcome.exit, Exit::Stopped);
    outcome = Evaluator::run_one(frame, semantics);
    EXPECT_EQ(outcome.exit, Exit::Stopped);
    EXPECT_EQ(decoded.at_unit(outcome.unit).row->name, "PUSH_EXC_INFO");
    EXPECT_FALSE(PyErr_Occurred());
    outcome = Evaluator::run(frame, semantics);
    return Evaluator::finish(frame, std::move(outcome));
  });
  EXPECT_EQ(as_long(result), 5);
}

TEST(Evaluator, YieldsThroughCPython) {
  Ref globals =
      run_module("def g():\n    x = yield 1\n    yield x\ndef f():\n    it = g()\n    return next(it) + it.send(10)\n");
  Semantics semantics;
  int yields = 0;
  Ref result = call(get(globals, "f"), [&](Frame frame, bool throwing) {
    Outcome outcome = Evaluator::run(frame, semantics, throwing);
    if (outcome.exit == Exit::Yielded && outcome.value) {
      ++yields;
      EXPECT_TRUE(frame.is_generator());
      EXPECT_EQ(frame.position(), outcome.unit);
    }
    return Evaluator::finish(frame, std::move(outcome));
  });
  EXPECT_EQ(as_long(result), 11);
  EXPECT_EQ(yields, 2);
}

TEST(Evaluator, BreaksUnwindPastHandlers) {
  Ref globals = run_module(
      "ran = []\ndef inner():\n    try:\n        return len([]) + 1\n    finally:\n        ran.append(1)\n"
      "def f():\n    try:\n        return inner()\n    except RuntimeError:\n        return 1\n");
  Watching semantics;
  semantics.break_in_binary = true;
  Ref result = call(get(globals, "f"), [&](Frame frame, bool) {
    Outcome outcome = Evaluator::run(frame, semantics);
    EXPECT_EQ(outcome.exit, Exit::Stopped);
    EXPECT_TRUE(PyErr_Occurred());
    return Evaluator::finish(frame, std::move(outcome));
  });
  EXPECT_FALSE(result);
  EXPECT_TRUE(PyErr_ExceptionMatches(PyExc_RuntimeError));
  PyErr_Clear();
  EXPECT_EQ(PyList_GET_SIZE(get(globals, "ran")), 0);
}

TEST(Evaluator, CoroutinesAreRefused) {
  Ref globals = run_module("async def f():\n    return 1\n");
  Ref coroutine = call(get(globals, "f"), [&](Frame frame, bool) {
    EXPECT_FALSE(Evaluator::can_run(frame));
    return cpython::leave_to_default(frame, false);
  });
  Ref closed = Ref::steal(PyObject_CallMethod(coroutine.get(), "close", nullptr));
  EXPECT_TRUE(closed);
}

}  // namespace
}  // namespace graphlift::eval
