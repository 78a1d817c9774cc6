// Owns: the ways to leave a frame (frame.h). All end in the default evaluator, which clears the frame where that is its
// task.
#include "cpython/internal.h"

#include "base/error.h"
#include "cpython/decode.h"
#include "cpython/exception.h"
#include "cpython/frame.h"
#include "cpython/hook.h"
#include "cpython/unwind.h"

namespace graphlift::cpython {
namespace {

bool handled_by_any(PyObject* exception) { return Ref::steal(PyErr_GetHandledException()).get() == exception; }

// Some instructions pass an exception on without a traceback entry of their own. When one did so with the pending
// exception and its operands are still there, it can be executed once more instead of throwing.
bool passes_on(Frame frame, const Instruction& instruction, PyObject* exception) {
  const std::string_view name = instruction.row->name;
  if (name == "RAISE_VARARGS") return instruction.arg == 0 && handled_by_any(exception);
  if (name != "RERAISE" && name != "CLEANUP_THROW") return false;
  return frame.depth() > 0 && frame.locals()[frame.top() - 1] == exception;
}

bool execute_again(Frame frame, const Decoded& decoded) {
  const int unit = frame.executing();
  if (unit < 0 || static_cast<size_t>(unit) >= decoded.index_of_unit.size()) return false;
  if (decoded.index_of_unit[static_cast<size_t>(unit)] < 0) return false;
  const Instruction& instruction = decoded.at_unit(unit);
  Ref exception = take_exception();
  if (instruction.row && passes_on(frame, instruction, exception.get())) {
    frame.set_position(instruction.unit);
    return true;
  }
  restore_exception(std::move(exception));
  return false;
}

#if PY_VERSION_HEX >= 0x030d0000
// 3.13 looks the handler of a thrown exception up one unit before the position, but takes the traceback's line from the
// position itself. Handlers are entered here; for an exception that leaves, the line is put right afterwards.
void correct_line(PyCodeObject* code, int unit) {
  Ref exception = take_exception();
  Ref traceback = Ref::steal(PyException_GetTraceback(exception.get()));
  if (traceback) {
    auto* entry = reinterpret_cast<PyTracebackObject*>(traceback.get());
    _PyInterpreterFrame* raw = entry->tb_frame->f_frame;
    const int bytes = unit * static_cast<int>(sizeof(_Py_CODEUNIT));
    if (_PyFrame_GetCode(raw) == code && entry->tb_lasti == bytes + static_cast<int>(sizeof(_Py_CODEUNIT))) {
      entry->tb_lasti = bytes;
      entry->tb_lineno = PyCode_Addr2Line(code, bytes);
      raw->instr_ptr = _PyCode_CODE(code) + unit;
    }
  }
  restore_exception(std::move(exception));
}

PyObject* throw_into(Frame frame, const Decoded& decoded) {
  const int unit = frame.executing();
  if (find_handler(decoded.handlers, unit)) {
    {
      LinkFrame link(frame);
      add_traceback(frame);
    }
    enter_handler(frame, decoded, unit);
    return default_evaluate(frame, false);
  }
  Ref code = Ref::borrow(reinterpret_cast<PyObject*>(frame.code()));
  frame.set_executing(unit + 1);
  PyObject* result = default_evaluate(frame, true);
  if (!result) correct_line(reinterpret_cast<PyCodeObject*>(code.get()), unit);
  return result;
}

constexpr int kLookupOffset = 1;
#else
PyObject* throw_into(Frame frame, const Decoded&) { return default_evaluate(frame, true); }

constexpr int kLookupOffset = 0;
#endif

}  // namespace

void fill_free_variables(Frame frame) {
  PyObject* function = frame.function();
  PyObject* closure = function && PyFunction_Check(function) ? PyFunction_GET_CLOSURE(function) : nullptr;
  if (!closure) return;
  const int count = static_cast<int>(PyTuple_GET_SIZE(closure));
  PyObject** slots = frame.locals() + frame.local_count() - count;
  for (int i = 0; i < count; ++i)
    if (!slots[i]) slots[i] = Py_NewRef(PyTuple_GET_ITEM(closure, i));
}

PyObject* leave_to_default(Frame frame, bool raising) {
  if (!raising) return default_evaluate(frame, false);
  const Decoded& decoded = decode(frame.code());
  if (execute_again(frame, decoded)) return default_evaluate(frame, false);
  return throw_into(frame, decoded);
}

PyObject* leave_by_return(Frame frame, PyObject* value, int unit) {
  const Instruction& instruction = decode(frame.code()).at_unit(unit);
  const std::string_view name = instruction.row->name;
  frame.set_position(instruction.unit);
  if (name == "RETURN_CONST") {
    Ref constant = Ref::steal(default_evaluate(frame, false));
    if (constant) return value;
    Py_DECREF(value);
    return nullptr;
  }
  GL_CHECK(name == "RETURN_VALUE" || name == "YIELD_VALUE", "leaving by " + std::string(name));
  if (name == "RETURN_VALUE") cut_stack(frame, 0);
  frame.locals()[frame.top()++] = value;
  return default_evaluate(frame, false);
}

PyObject* leave_unwinding(Frame frame) {
  {
    SavedError saved;
    cut_stack(frame, 0);
  }
  fill_free_variables(frame);
  // Handlers never cover the first unit of a code object, nor a plain function's first traceable one, from where on the
  // frame gets its entry in the traceback.
  const int first = frame.is_generator() ? 0 : frame.code()->_co_firsttraceable;
  frame.set_executing(first + kLookupOffset);
  return default_evaluate(frame, true);
}

}  // namespace graphlift::cpython
