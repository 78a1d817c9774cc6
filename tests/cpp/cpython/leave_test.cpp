// Owns: tests of the ways to leave a frame: by a value, by an exception, past the frame's handlers.
#include <gtest/gtest.h>

#include <functional>

#include "cpython/decode.h"
#include "cpython/exception.h"
#include "cpython/frame.h"
#include "cpython/hook.h"
#include "python_code.h"

namespace graphlift::cpython {
namespace {

struct Leaving : FrameHandler {
  std::function<PyObject*(Frame)> leave;
  PyObject* evaluate(Frame frame, bool, bool*) override { return leave(frame); }
};

Ref call_leaving(PyObject* function, std::function<PyObject*(Frame)> leave) {
  Leaving handler;
  handler.leave = std::move(leave);
  HookScope scope(&handler);
  return Ref::steal(PyObject_CallNoArgs(function));
}

int unit_of(PyCodeObject* code, std::string_view opcode, int skip = 0) {
  for (const Instruction& instruction : decode(code).instructions) {
    if (instruction.row->name == opcode && skip-- == 0) return instruction.unit;
  }
  return -1;
}

int return_unit(PyCodeObject* code) {
  const int unit = unit_of(code, "RETURN_VALUE");
  return unit >= 0 ? unit : unit_of(code, "RETURN_CONST");
}

TEST(Leave, ByReturn) {
  Ref globals = run_module("def f():\n    return len([])\ndef g():\n    return 5\n");
  for (const char* name : {"f", "g"}) {
    const int unit = return_unit(code_of(globals, name));
    ASSERT_GE(unit, 0);
    Ref result = call_leaving(get(globals, name),
                              [&](Frame frame) { return leave_by_return(frame, PyLong_FromLong(42), unit); });
    EXPECT_EQ(as_long(result), 42);
  }
}

TEST(Leave, RaisingReachesTheHandlersOfTheFrame) {
  Ref globals = run_module(
      "def f():\n    try:\n        len([])\n    except KeyError as e:\n        return e.__traceback__.tb_lineno\n    "
      "return 0\n");
  const int unit = unit_of(code_of(globals, "f"), "CALL");
  Ref result = call_leaving(get(globals, "f"), [&](Frame frame) {
    frame.set_executing(decode(frame.code()).at_unit(unit).own_unit);
    PyErr_SetString(PyExc_KeyError, "ours");
    return leave_to_default(frame, true);
  });
  EXPECT_EQ(as_long(result), 3);
}

TEST(Leave, RaisingUncaughtNamesTheLine) {
  Ref globals = run_module("def f():\n    x = 1\n    y = len([])\n    return y\n");
  const int unit = unit_of(code_of(globals, "f"), "CALL");
  Ref result = call_leaving(get(globals, "f"), [&](Frame frame) {
    frame.set_executing(decode(frame.code()).at_unit(unit).own_unit);
    PyErr_SetString(PyExc_KeyError, "ours");
    return leave_to_default(frame, true);
  });
  EXPECT_FALSE(result);
  Ref exception = take_exception();
  Ref traceback = Ref::steal(PyException_GetTraceback(exception.get()));
  ASSERT_TRUE(traceback);
  EXPECT_EQ(as_long(Ref::steal(PyObject_GetAttrString(traceback.get(), "tb_lineno"))), 3);
  EXPECT_EQ(as_long(Ref::steal(PyObject_GetAttrString(traceback.get(), "tb_lasti"))),
            2 * decode(code_of(globals, "f")).at_unit(unit).own_unit);
}

TEST(Leave, UnwindingSkipsTheHandlers) {
  Ref globals = run_module("ran = []\ndef f():\n    try:\n        len([])\n    finally:\n        ran.append(1)\n");
  Ref result = call_leaving(get(globals, "f"), [&](Frame frame) {
    frame.locals()[frame.top()++] = PyLong_FromLong(7);  // something on the stack
    frame.set_position(unit_of(frame.code(), "CALL"));
    PyErr_SetString(PyExc_KeyError, "ours");
    return leave_unwinding(frame);
  });
  EXPECT_FALSE(result);
  EXPECT_TRUE(PyErr_ExceptionMatches(PyExc_KeyError));
  PyErr_Clear();
  EXPECT_EQ(PyList_GET_SIZE(get(globals, "ran")), 0);
}

}  // namespace
}  // namespace graphlift::cpython
