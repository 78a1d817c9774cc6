// Owns: what pending.h says. The work is left to CPython: its evaluator does it on entry of any frame, so an empty one
// is run.
#include "cpython/internal.h"

#include "cpython/pending.h"

#include "base/ref.h"
#include "cpython/exception.h"
#include "cpython/hook.h"

namespace graphlift::cpython {
namespace {

bool something_pending() {
  PyThreadState* thread = PyThreadState_Get();
#if PY_VERSION_HEX >= 0x030d0000
  return (__atomic_load_n(&thread->eval_breaker, __ATOMIC_RELAXED) & 0xff) != 0;
#else
  return __atomic_load_n(&thread->interp->ceval.eval_breaker._value, __ATOMIC_RELAXED) != 0;
#endif
}

// Null with an error: compiling is told to audit hooks, and what is pending may come while one of them runs.
PyObject* empty_code() {
  static PyObject* code = nullptr;
  HookScope paused(nullptr);
  if (!code) code = Py_CompileString("pass", "<pending>", Py_file_input);
  return code;
}

int run_empty_frame(PyObject* code) {
  HookScope paused(nullptr);
  Ref globals = Ref::steal(PyDict_New());
  Ref result = globals ? Ref::steal(PyEval_EvalCode(code, globals.get(), globals.get())) : Ref();
  return result ? 0 : -1;
}

// The traceback starts at the empty frame, which is nobody's business.
void drop_first_entry() {
  Ref exception = take_exception();
  Ref traceback = Ref::steal(PyException_GetTraceback(exception.get()));
  PyObject* rest =
      traceback ? reinterpret_cast<PyObject*>(reinterpret_cast<PyTracebackObject*>(traceback.get())->tb_next) : nullptr;
  PyException_SetTraceback(exception.get(), rest ? rest : Py_None);
  restore_exception(std::move(exception));
}

}  // namespace

int poll() {
  if (!something_pending()) return 0;
  PyObject* code = empty_code();
  if (!code) return -1;
  if (run_empty_frame(code) == 0) return 0;
  drop_first_entry();
  return -1;
}

}  // namespace graphlift::cpython
