// Owns: Semantics as CPython does it: operators, attributes, items, calls.
#include "cpython/api.h"
#include "eval/errors.h"
#include "eval/semantics.h"

namespace graphlift::eval {
namespace {

using BinaryFunction = PyObject* (*)(PyObject*, PyObject*);

PyObject* power(PyObject* left, PyObject* right) { return PyNumber_Power(left, right, Py_None); }
PyObject* in_place_power(PyObject* left, PyObject* right) { return PyNumber_InPlacePower(left, right, Py_None); }

// By NB_ADD ... NB_INPLACE_XOR.
constexpr BinaryFunction kBinary[] = {
    PyNumber_Add,
    PyNumber_And,
    PyNumber_FloorDivide,
    PyNumber_Lshift,
    PyNumber_MatrixMultiply,
    PyNumber_Multiply,
    PyNumber_Remainder,
    PyNumber_Or,
    power,
    PyNumber_Rshift,
    PyNumber_Subtract,
    PyNumber_TrueDivide,
    PyNumber_Xor,
    PyNumber_InPlaceAdd,
    PyNumber_InPlaceAnd,
    PyNumber_InPlaceFloorDivide,
    PyNumber_InPlaceLshift,
    PyNumber_InPlaceMatrixMultiply,
    PyNumber_InPlaceMultiply,
    PyNumber_InPlaceRemainder,
    PyNumber_InPlaceOr,
    in_place_power,
    PyNumber_InPlaceRshift,
    PyNumber_InPlaceSubtract,
    PyNumber_InPlaceTrueDivide,
    PyNumber_InPlaceXor,
};

}  // namespace

Ref Semantics::unary(int op, PyObject* value) {
  return Ref::steal(op == kPositive   ? PyNumber_Positive(value)
                    : op == kNegative ? PyNumber_Negative(value)
                                      : PyNumber_Invert(value));
}

Ref Semantics::binary(int op, PyObject* left, PyObject* right) { return Ref::steal(kBinary[op](left, right)); }
Ref Semantics::compare(int op, PyObject* left, PyObject* right) {
  return Ref::steal(PyObject_RichCompare(left, right, op));
}
int Semantics::is_same(PyObject* left, PyObject* right) { return left == right; }
int Semantics::contains(PyObject* container, PyObject* item) { return PySequence_Contains(container, item); }
int Semantics::truth(PyObject* value) { return PyObject_IsTrue(value); }

Ref Semantics::get_attr(PyObject* object, PyObject* name) { return Ref::steal(PyObject_GetAttr(object, name)); }

Ref Semantics::get_method(PyObject* object, PyObject* name, Ref* self) {
  Ref method;
  if (cpython::get_method(object, name, &method)) *self = Ref::borrow(object);
  return method;
}

Ref Semantics::get_super_attr(PyObject* super_type, PyObject* type, PyObject* self, PyObject* name) {
  PyObject* args[] = {type, self};
  Ref object = Ref::steal(PyObject_Vectorcall(super_type, args, 2, nullptr));
  return object ? Ref::steal(PyObject_GetAttr(object.get(), name)) : Ref();
}

int Semantics::set_attr(PyObject* object, PyObject* name, PyObject* value) {
  return PyObject_SetAttr(object, name, value);
}

Ref Semantics::get_item(PyObject* object, PyObject* key) { return Ref::steal(PyObject_GetItem(object, key)); }

int Semantics::set_item(PyObject* object, PyObject* key, PyObject* value) {
  return value ? PyObject_SetItem(object, key, value) : PyObject_DelItem(object, key);
}

Ref Semantics::length(PyObject* object) {
  const Py_ssize_t size = PyObject_Length(object);
  return size < 0 ? Ref() : Ref::steal(PyLong_FromSsize_t(size));
}

Ref Semantics::call(PyObject* callable, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames) {
  return Ref::steal(PyObject_Vectorcall(callable, args, static_cast<size_t>(nargs), kwnames));
}

Ref Semantics::call_ex(PyObject* callable, PyObject* args_tuple, PyObject* kwargs_or_null) {
  return Ref::steal(PyObject_Call(callable, args_tuple, kwargs_or_null));
}

Ref Semantics::make_function(cpython::Frame& frame, PyObject* code, PyObject* defaults, PyObject* kwdefaults,
                             PyObject* annotations, PyObject* closure) {
  Ref made = Ref::steal(PyFunction_New(code, frame.globals()));
  if (!made) return made;
  auto* function = reinterpret_cast<PyFunctionObject*>(made.get());
  // A new function has none of these, and annotations may be a tuple, which the setters refuse.
  function->func_defaults = Py_XNewRef(defaults);
  function->func_kwdefaults = Py_XNewRef(kwdefaults);
  function->func_annotations = Py_XNewRef(annotations);
  function->func_closure = Py_XNewRef(closure);
  return made;
}

Ref Semantics::load_special(PyObject* object, PyObject* name) {
  Ref method = cpython::lookup_special(object, name);
  if (!method && !PyErr_Occurred()) {
    const bool exit = PyUnicode_CompareWithASCIIString(name, "__exit__") == 0;
    PyErr_Format(PyExc_TypeError, "'%.200s' object does not support the context manager protocol%s",
                 Py_TYPE(object)->tp_name, exit ? " (missed __exit__ method)" : "");
  }
  return method;
}

int Semantics::exception_matches(PyObject* exception, PyObject* type) {
  return PyErr_GivenExceptionMatches(exception, type);
}

}  // namespace graphlift::eval
