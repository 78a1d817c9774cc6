// Owns: micro-ops for calls and for making functions. Argument binding is CPython's.
#include "cpython/api.h"
#include "eval/activation.h"
#include "eval/errors.h"

namespace graphlift::eval {
namespace {

// Two slots, a callable and maybe a receiver, below the arguments. Whichever slot is null is no part of the call.
Flow call(Activation& a, int count, PyObject* names) {
  PyObject** slots = a.from_top(count + 2);
  const bool with_self = slots[0] && slots[1];
  PyObject* callable = slots[0] ? slots[0] : slots[1];
  PyObject** args = with_self ? slots + 1 : slots + 2;
  const Py_ssize_t total = count + (with_self ? 1 : 0);
  const Py_ssize_t named = names ? PyTuple_GET_SIZE(names) : 0;
  return a.replace(count + 2, a.semantics.call(callable, args, total - named, names));
}

Ref tuple_of(Activation& a, PyObject* callable, PyObject* args) {
  if (PyTuple_CheckExact(args)) return Ref::borrow(args);
  if (!Py_TYPE(args)->tp_iter && !PySequence_Check(args)) {
    if (Ref text = cpython::function_text(callable)) {
      PyErr_Format(PyExc_TypeError, "%U argument after * must be an iterable, not %.200s", text.get(),
                   Py_TYPE(args)->tp_name);
    }
    return Ref();
  }
  Ref list = Ref::steal(PyList_New(0));
  if (!list || a.semantics.list_extend(list.get(), args) < 0) return Ref();
  return Ref::steal(PyList_AsTuple(list.get()));
}

Ref dict_of(Activation& a, PyObject* callable, PyObject* kwargs) {
  if (PyDict_CheckExact(kwargs)) return Ref::borrow(kwargs);
  Ref dict = Ref::steal(PyDict_New());
  if (!dict || a.semantics.dict_merge(dict.get(), kwargs, callable) < 0) return Ref();
  return dict;
}

}  // namespace

Flow do_KwNames(Activation& a, int i) {
  a.kw_names = a.constant(i);
  return Flow::Next;
}

Flow do_Call(Activation& a, int count) { return call(a, count, a.kw_names); }

Flow do_CallKw(Activation& a, int count) {
  Ref names = a.pop();
  return call(a, count, names.get());
}

Flow do_CallEx(Activation& a, int with_kwargs) {
  const int operands = 3 + (with_kwargs & 1);
  PyObject** slots = a.from_top(operands);  // callable and null in either order, arguments, maybe keywords
  PyObject* callable = slots[1] ? slots[1] : slots[0];
  PyObject* keywords = (with_kwargs & 1) ? slots[3] : nullptr;
  Ref kwargs = keywords ? dict_of(a, callable, keywords) : Ref();
  if (keywords && !kwargs) return Flow::Error;
  Ref args = tuple_of(a, callable, slots[2]);
  if (!args) return Flow::Error;
  return a.replace(operands, a.semantics.call_ex(callable, args.get(), kwargs.get()));
}

Flow do_MakeFunction(Activation& a, int flags) {
  Ref code = a.pop();
  Ref closure = flags & 8 ? a.pop() : Ref();
  Ref annotations = flags & 4 ? a.pop() : Ref();
  Ref kwdefaults = flags & 2 ? a.pop() : Ref();
  Ref defaults = flags & 1 ? a.pop() : Ref();
  return a.push_result(a.semantics.make_function(a.frame, code.get(), defaults.get(), kwdefaults.get(),
                                                 annotations.get(), closure.get()));
}

Flow do_SetFunctionAttribute(Activation& a, int flag) {
  auto* function = reinterpret_cast<PyFunctionObject*>(a.peek(1));
  PyObject** field = flag == 1   ? &function->func_defaults
                     : flag == 2 ? &function->func_kwdefaults
                     : flag == 4 ? &function->func_annotations
                     : flag == 8 ? &function->func_closure
                                 : nullptr;
  if (!field) return Flow::Leave;
  Ref made = a.pop();
  Ref::steal(std::exchange(*field, a.pop().release()));
  a.push(std::move(made));
  return Flow::Next;
}

}  // namespace graphlift::eval
