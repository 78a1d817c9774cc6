// Owns: tests of the hook: who gets which frame, chaining of another evaluator, removal in any order.
#include "cpython/internal.h"

#include "cpython/hook.h"

#include <gtest/gtest.h>

#include "python_code.h"

namespace graphlift::cpython {
namespace {

constexpr const char* kSource = "def inner(x):\n    return x + 1\ndef outer(x):\n    return inner(x) * 2\n";

struct Counting : FrameHandler {
  int seen = 0;
  bool take = true;
  PyObject* evaluate(Frame frame, bool throwing, bool* handled) override {
    ++seen;
    *handled = take;
    return take ? leave_to_default(frame, throwing) : nullptr;
  }
};

int foreign_frames = 0;

PyObject* foreign(PyThreadState* thread, _PyInterpreterFrame* frame, int throwing) {
  ++foreign_frames;
  return _PyEval_EvalFrameDefault(thread, frame, throwing);
}

_PyFrameEvalFunction below_foreign = nullptr;

PyObject* foreign_on_top(PyThreadState* thread, _PyInterpreterFrame* frame, int throwing) {
  ++foreign_frames;
  return below_foreign(thread, frame, throwing);
}

long call(const Ref& globals, const char* name, long argument) {
  return as_long(Ref::steal(PyObject_CallFunction(get(globals, name), "l", argument)));
}

void set_evaluator(_PyFrameEvalFunction function) {
  _PyInterpreterState_SetEvalFrameFunc(PyInterpreterState_Get(), function);
}

TEST(Hook, HandlerGetsEveryFrameOfTheScope) {
  Ref globals = run_module(kSource);
  Counting counting;
  {
    HookScope scope(&counting);
    EXPECT_EQ(call(globals, "outer", 3), 8);
  }
  EXPECT_EQ(counting.seen, 2);
  EXPECT_EQ(call(globals, "outer", 3), 8);
  EXPECT_EQ(counting.seen, 2);
  EXPECT_FALSE(hook_installed());
}

TEST(Hook, DeclinedFramesRunAsUsual) {
  Ref globals = run_module(kSource);
  Counting counting;
  counting.take = false;
  HookScope scope(&counting);
  EXPECT_EQ(call(globals, "outer", 3), 8);
  EXPECT_EQ(counting.seen, 2);
}

TEST(Hook, ScopesNestAndPause) {
  Ref globals = run_module(kSource);
  Counting first, second;
  HookScope scope(&first);
  {
    HookScope paused(nullptr);
    call(globals, "outer", 1);
    EXPECT_EQ(current_handler(), nullptr);
    HookScope inner(&second);
    call(globals, "inner", 1);
  }
  EXPECT_EQ(first.seen, 0);
  EXPECT_EQ(second.seen, 1);
  call(globals, "inner", 1);
  EXPECT_EQ(first.seen, 1);
  EXPECT_TRUE(hook_installed());
}

TEST(Hook, EarlierEvaluatorIsChainedAndRestored) {
  Ref globals = run_module(kSource);
  set_evaluator(foreign);
  foreign_frames = 0;
  Counting counting;
  {
    HookScope scope(&counting);
    EXPECT_EQ(call(globals, "outer", 3), 8);
    EXPECT_EQ(foreign_frames, 2);  // frames that the handler leaves go on in it
    HookScope paused(nullptr);
    call(globals, "inner", 1);
    EXPECT_EQ(foreign_frames, 3);
  }
  EXPECT_EQ(_PyInterpreterState_GetEvalFrameFunc(PyInterpreterState_Get()), foreign);
  set_evaluator(_PyEval_EvalFrameDefault);
}

TEST(Hook, EvaluatorThatCameOnTopIsNotRemoved) {
  Ref globals = run_module(kSource);
  foreign_frames = 0;
  Counting counting;
  {
    HookScope scope(&counting);
    below_foreign = _PyInterpreterState_GetEvalFrameFunc(PyInterpreterState_Get());
    set_evaluator(foreign_on_top);
    call(globals, "inner", 1);
    EXPECT_EQ(counting.seen, 1);
  }
  EXPECT_EQ(call(globals, "outer", 3), 8);  // still below it, with nothing to do
  EXPECT_EQ(counting.seen, 1);
  {
    HookScope again(&counting);
    call(globals, "inner", 1);
    EXPECT_EQ(counting.seen, 2);
  }
  set_evaluator(_PyEval_EvalFrameDefault);  // it leaves without putting back what it found
  {
    HookScope anew(&counting);
    call(globals, "inner", 1);
    EXPECT_EQ(counting.seen, 3);
  }
  EXPECT_FALSE(hook_installed());
}

}  // namespace
}  // namespace graphlift::cpython
