// Owns: micro-ops for raising, handling, `with`, and CPython's intrinsic functions.
#include "cpython/exception.h"
#include "eval/activation.h"
#include "eval/errors.h"
#include "eval/exception_groups.h"

namespace graphlift::eval {
namespace {

bool each_type(PyObject* type, bool (*holds)(PyObject*)) {
  if (!PyTuple_Check(type)) return holds(type);
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(type); ++i) {
    if (!holds(PyTuple_GET_ITEM(type, i))) return false;
  }
  return true;
}

bool check_catchable(PyObject* type) {
  if (each_type(type, [](PyObject* t) { return PyExceptionClass_Check(t) != 0; })) return true;
  PyErr_SetString(PyExc_TypeError, "catching classes that do not inherit from BaseException is not allowed");
  return false;
}

bool check_no_group(PyObject* type) {
  const bool ok = each_type(type, [](PyObject* t) { return PyObject_IsSubclass(t, PyExc_BaseExceptionGroup) == 0; });
  if (ok) return true;
  if (!PyErr_Occurred()) {
    PyErr_SetString(PyExc_TypeError, "catching ExceptionGroup with except* is not allowed. Use except instead.");
  }
  return false;
}

// An exception class is called, an instance is itself; anything else gives null, with `message` as TypeError.
Ref instance_of(Activation& a, PyObject* exception, const char* message) {
  if (PyExceptionInstance_Check(exception)) return Ref::borrow(exception);
  if (!PyExceptionClass_Check(exception)) {
    PyErr_SetString(PyExc_TypeError, message);
    return Ref();
  }
  Ref value = a.semantics.call(exception, nullptr, 0, nullptr);
  if (value && !PyExceptionInstance_Check(value.get())) {
    PyErr_Format(PyExc_TypeError, "calling %R should have returned an instance of BaseException, not %R", exception,
                 Py_TYPE(value.get()));
    return Ref();
  }
  return value;
}

Flow raise_again() {
  Ref exception = Ref::steal(PyErr_GetHandledException());
  if (!exception || exception.get() == Py_None) {
    PyErr_SetString(PyExc_RuntimeError, "No active exception to reraise");
    return Flow::Error;
  }
  cpython::restore_exception(std::move(exception));
  return Flow::Reraise;
}

Ref traceback_of(PyObject* exception) {
  Ref traceback = Ref::steal(PyException_GetTraceback(exception));
  return traceback ? std::move(traceback) : Ref::borrow(Py_None);
}

// exit(type, value, traceback) of the exception on top; null self: `exit` is bound.
Flow call_exit(Activation& a, PyObject* exit, PyObject* self) {
  PyObject* exception = a.peek(1);
  Ref traceback = traceback_of(exception);
  PyObject* args[] = {self, reinterpret_cast<PyObject*>(Py_TYPE(exception)), exception, traceback.get()};
  return a.push_result(a.semantics.call(exit, self ? args : args + 1, self ? 4 : 3, nullptr));
}

// What a generator does with a StopIteration that leaves its body.
Ref without_stop_iteration(const Activation& a, PyObject* exception) {
  const bool is_async = (a.code->co_flags & CO_ASYNC_GENERATOR) != 0;
  const char* message = nullptr;
  if (PyErr_GivenExceptionMatches(exception, PyExc_StopIteration)) {
    message = is_async                                 ? "async generator raised StopIteration"
              : (a.code->co_flags & CO_COROUTINE) != 0 ? "coroutine raised StopIteration"
                                                       : "generator raised StopIteration";
  } else if (is_async && PyErr_GivenExceptionMatches(exception, PyExc_StopAsyncIteration)) {
    message = "async generator raised StopAsyncIteration";
  }
  if (!message) return Ref::borrow(exception);
  Ref error = Ref::steal(PyObject_CallFunction(PyExc_RuntimeError, "s", message));
  if (!error) return Ref();
  PyException_SetCause(error.get(), Py_NewRef(exception));
  PyException_SetContext(error.get(), Py_NewRef(exception));
  return error;
}

Ref print_expression(Activation& a, PyObject* value) {
  PyObject* display = PySys_GetObject("displayhook");
  if (!display) {
    PyErr_SetString(PyExc_RuntimeError, "lost sys.displayhook");
    return Ref();
  }
  return a.semantics.call(display, &value, 1, nullptr);
}

}  // namespace

Flow do_PushExcInfo(Activation& a, int) {
  Ref value = a.pop();
  a.push(Ref::borrow(cpython::handled_exception()));
  cpython::set_handled_exception(Py_NewRef(value.get()));
  a.push(std::move(value));
  return Flow::Next;
}

Flow do_PopExcept(Activation& a, int) {
  cpython::set_handled_exception(a.pop().release());
  return Flow::Next;
}

Flow do_CheckExcMatch(Activation& a, int) {
  if (!check_catchable(a.peek(1))) return Flow::Error;
  const int matches = a.semantics.exception_matches(a.peek(2), a.peek(1));
  if (matches < 0) return Flow::Error;
  a.set(1, boolean(matches));
  return Flow::Next;
}

Flow do_CheckEgMatch(Activation& a, int) {
  if (!check_catchable(a.peek(1)) || !check_no_group(a.peek(1))) return Flow::Error;
  GroupMatch split = match_group(a.semantics, a.peek(2), a.peek(1));
  if (!split.match) return Flow::Error;
  if (split.match.get() != Py_None) PyErr_SetHandledException(split.match.get());
  a.set(2, std::move(split.rest));
  a.set(1, std::move(split.match));
  return Flow::Next;
}

Flow do_Raise(Activation& a, int count) {
  if (count == 0) return a.semantics.raising(nullptr, nullptr) < 0 ? Flow::Error : raise_again();
  Ref value = instance_of(a, a.peek(count), "exceptions must derive from BaseException");
  if (!value || a.semantics.raising(value.get(), count == 2 ? a.peek(1) : nullptr) < 0) return Flow::Error;
  if (count == 2) {
    PyObject* given = a.peek(1);
    Ref cause = given == Py_None ? Ref() : instance_of(a, given, "exception causes must derive from BaseException");
    if (!cause && given != Py_None) return Flow::Error;
    PyException_SetCause(value.get(), cause.release());
  }
  PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(value.get())), value.get());
  return Flow::Error;
}

// The values below: with an argument, the unit where the exception was raised first, which tracebacks keep showing.
Flow do_Reraise(Activation& a, int arg) {
  if (arg && PyLong_Check(a.peek(arg + 1))) {
    a.frame.set_executing(static_cast<int>(PyLong_AsLong(a.peek(arg + 1))));
  }
  cpython::restore_exception(Ref::borrow(a.peek(1)));
  return Flow::Reraise;
}

Flow do_BeforeWith(Activation& a, int) {
  Ref enter = a.semantics.load_special(a.peek(1), interned("__enter__"));
  if (!enter) return Flow::Error;
  Ref exit = a.semantics.load_special(a.peek(1), interned("__exit__"));
  if (!exit) return Flow::Error;
  a.set(1, std::move(exit));
  return a.push_result(a.semantics.call(enter.get(), nullptr, 0, nullptr));
}

Flow do_LoadSpecial(Activation& a, int which) {
  static const char* const names[] = {"__enter__", "__exit__", "__aenter__", "__aexit__"};
  Ref method = a.semantics.load_special(a.peek(1), interned(names[which & 3]));
  if (!method) return Flow::Error;
  a.set(1, std::move(method));
  a.push(Ref());
  return Flow::Next;
}

Flow do_WithExceptStart(Activation& a, int) { return call_exit(a, a.peek(4), nullptr); }
Flow do_WithExceptStartSelf(Activation& a, int) { return call_exit(a, a.peek(5), a.peek(4)); }

// A generator's throw() came back out of the iterator of `yield from`: StopIteration ends the delegation with its
// value.
Flow do_CleanupThrow(Activation& a, int) {
  PyObject* exception = a.peek(1);
  if (!PyErr_GivenExceptionMatches(exception, PyExc_StopIteration)) {
    cpython::restore_exception(Ref::borrow(exception));
    return Flow::Reraise;
  }
  Ref value = Ref::steal(PyObject_GetAttr(exception, interned("value")));
  if (!value) return Flow::Error;
  a.drop(3);
  a.push(Ref::borrow(Py_None));
  a.push(std::move(value));
  return Flow::Next;
}

// Numbers as in CPython's intrinsics table. Those of type parameters stay with CPython.
Flow do_Intrinsic1(Activation& a, int which) {
  PyObject* value = a.peek(1);
  switch (which) {
    case 1:
      return a.replace(1, print_expression(a, value));
    case 2:
      return a.semantics.import_star(a.frame, value) < 0 ? Flow::Error : a.replace(1, Ref::borrow(Py_None));
    case 3:
      return a.replace(1, without_stop_iteration(a, value));
    case 5:
      return a.replace(1, a.semantics.unary(kPositive, value));
    case 6:
      return a.replace(1, a.semantics.list_to_tuple(value));
    default:
      return Flow::Leave;
  }
}

Flow do_Intrinsic2(Activation& a, int which) {
  if (which != 1) return Flow::Leave;
  return a.replace(2, combine_groups(a.semantics, a.peek(2), a.peek(1)));
}

}  // namespace graphlift::eval
