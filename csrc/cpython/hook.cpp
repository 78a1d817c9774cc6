// Owns: installing and removing the hook, and its function. All state is guarded by the GIL, except the thread's
// handler.
#include "cpython/internal.h"

#include "cpython/hook.h"

#include <utility>

namespace graphlift::cpython {
namespace {

thread_local FrameHandler* handler_of_thread = nullptr;
int scopes = 0;                          // scopes with a handler, in all threads
_PyFrameEvalFunction chained = nullptr;  // what was installed before the hook; null: not installed

bool observed(PyThreadState* thread) {
#if PY_VERSION_HEX >= 0x030c0000
  if (thread->c_tracefunc || thread->c_profilefunc) return true;
  for (uint8_t tools : thread->interp->monitors.tools) {
    if (tools) return true;
  }
  return false;
#else
  return thread->cframe->use_tracing != 0;
#endif
}

// A monitoring tool watches this code object alone.
bool watched([[maybe_unused]] PyCodeObject* code) {
#if PY_VERSION_HEX >= 0x030c0000
  if (!code->_co_monitoring) return false;
  for (uint8_t tools : code->_co_monitoring->local_monitors.tools) {
    if (tools) return true;
  }
#endif
  return false;
}

// Not the program's own: finalizers and callbacks that the garbage collector runs, which come between any two
// instructions, and audit hooks and trace functions, which CPython runs with tracing off.
bool beside_program(PyThreadState* thread) { return thread->interp->gc.collecting != 0 || thread->tracing != 0; }

// Whoever was there before may have been put on top of the hook meanwhile, too (torch._dynamo, which stays behind after
// some of its errors): then each calls the other, and a frame comes back as it went.
thread_local _PyInterpreterFrame* handed_on = nullptr;

PyObject* hand_on(PyThreadState* thread, _PyInterpreterFrame* raw, int throwing) {
  if (!chained) return _PyEval_EvalFrameDefault(thread, raw, throwing);
  _PyInterpreterFrame* const before = std::exchange(handed_on, raw);
  PyObject* result = chained(thread, raw, throwing);
  handed_on = before;
  return result;
}

PyObject* evaluate(PyThreadState* thread, _PyInterpreterFrame* raw, int throwing) {
  if (handed_on == raw) return _PyEval_EvalFrameDefault(thread, raw, throwing);
  FrameHandler* handler = handler_of_thread;
  Frame frame(raw);
  if (handler && !observed(thread) && !watched(frame.code()) && !beside_program(thread)) {
    bool handled = true;
    PyObject* result = handler->evaluate(frame, throwing != 0, &handled);
    if (handled) return result;
  }
  return hand_on(thread, raw, throwing);
}

void install() {
  PyInterpreterState* interpreter = PyInterpreterState_Get();
  _PyFrameEvalFunction present = _PyInterpreterState_GetEvalFrameFunc(interpreter);
  if (present == evaluate) return;
  if (chained && present != _PyEval_EvalFrameDefault) return;  // somebody came on top of the hook and calls it
  chained = present;
  _PyInterpreterState_SetEvalFrameFunc(interpreter, evaluate);
}

void uninstall() {
  PyInterpreterState* interpreter = PyInterpreterState_Get();
  if (_PyInterpreterState_GetEvalFrameFunc(interpreter) != evaluate) return;  // somebody on top still needs the hook
  _PyInterpreterState_SetEvalFrameFunc(interpreter, chained);
  chained = nullptr;
}

}  // namespace

HookScope::HookScope(FrameHandler* handler) : before_(handler_of_thread), counted_(handler != nullptr) {
  if (counted_ && (scopes++ == 0 || !hook_installed())) install();
  handler_of_thread = handler;
}

HookScope::~HookScope() {
  handler_of_thread = before_;
  if (counted_ && --scopes == 0) uninstall();
}

FrameHandler* current_handler() { return handler_of_thread; }

bool hook_installed() { return _PyInterpreterState_GetEvalFrameFunc(PyInterpreterState_Get()) == evaluate; }

bool thread_observed() { return observed(PyThreadState_Get()); }

PyObject* default_evaluate(Frame frame, bool throwing) {
  PyThreadState* thread = PyThreadState_Get();
  return hand_on(thread, frame.raw(), throwing);
}

}  // namespace graphlift::cpython
