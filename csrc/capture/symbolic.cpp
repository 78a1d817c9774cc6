// Owns: arithmetic and comparisons of symbolic ints; see items.h.
// Must not: go through torch's Python methods of SymInt, which import sympy.
#include <optional>

#include "capture/items.h"

namespace graphlift::capture {

namespace {

// An exact int of 64 bits or a symbolic one; nothing for anything else.
std::optional<ir::Sym> as_sym(Capture& capture, PyObject* object) {
  if (torch_layer::is_sym_scalar(object)) return capture.tracer->sym_of(object);
  if (!PyLong_CheckExact(object)) return std::nullopt;
  int overflow = 0;
  const long long number = PyLong_AsLongLongAndOverflow(object, &overflow);
  if (overflow) return std::nullopt;
  return ir::Sym(number);
}

bool operands(Capture& capture, PyObject* left, PyObject* right, std::optional<ir::Sym>* a, std::optional<ir::Sym>* b) {
  if (!torch_layer::is_sym_scalar(left) && !torch_layer::is_sym_scalar(right)) return false;
  *a = as_sym(capture, left);
  *b = as_sym(capture, right);
  return a->has_value() && b->has_value();
}

constexpr int kInplace = 13;  // NB_INPLACE_ADD - NB_ADD

std::optional<torch_layer::Arithmetic> arithmetic_of(int op) {
  switch (op % kInplace) {
    case 0:
      return torch_layer::Arithmetic::Add;
    case 10:
      return torch_layer::Arithmetic::Sub;
    case 5:
      return torch_layer::Arithmetic::Mul;
    case 11:
      return torch_layer::Arithmetic::Div;
    case 8:
      return torch_layer::Arithmetic::Pow;
    default:
      return std::nullopt;
  }
}

// A float that the graph computes with another, with a number or a tensor; floats that sizes are made into.
bool float_binary(Capture& capture, int op, PyObject* left, PyObject* right, Ref* result) {
  const std::optional<torch_layer::Arithmetic> arithmetic = arithmetic_of(op);
  if (!arithmetic) return false;
  if (torch_layer::is_stand_in(right) && torch_layer::is_graph_float(left)) {
    static constexpr const char* kReflected[] = {"__radd__", "__rsub__", "__rmul__", "__rtruediv__", "__rpow__"};
    *result = Ref::steal(PyObject_CallMethod(right, kReflected[static_cast<size_t>(*arithmetic)], "O", left));
    if (capture.pending) result->reset();
    return true;
  }
  if (torch_layer::is_stand_in(left) || torch_layer::is_stand_in(right)) return false;
  *result = capture.tracer->arithmetic(*arithmetic, left, right);
  return *result || PyErr_Occurred();
}

}  // namespace

bool symbolic_binary(Capture& capture, int op, PyObject* left, PyObject* right, Ref* result) {
  if (!torch_layer::is_sym_scalar(left) && !torch_layer::is_sym_scalar(right)) return false;
  if (float_binary(capture, op, left, right, result)) return true;
  std::optional<ir::Sym> a, b;
  if (!operands(capture, left, right, &a, &b)) return false;
  std::optional<ir::Sym> value;
  switch (op % kInplace) {
    case 0:
      value = *a + *b;
      break;  // NB_ADD
    case 10:
      value = *a - *b;
      break;  // NB_SUBTRACT
    case 5:
      value = *a * *b;
      break;  // NB_MULTIPLY
    case 2:   // NB_FLOOR_DIVIDE
    case 6:   // NB_REMAINDER
      if (capture.shapes.hint(*b) == 0) return false;
      if (!b->is_constant()) capture.shapes.guard(ir::Relation::Ne, *b, ir::Sym(0));
      value = op % kInplace == 2 ? floordiv(*a, *b) : mod(*a, *b);
      break;
    default:
      return false;
  }
  *result = value->is_constant() ? Ref::steal(PyLong_FromLongLong(value->constant())) : capture.tracer->sym_int(*value);
  return true;
}

bool symbolic_compare(Capture& capture, int op, PyObject* left, PyObject* right, Ref* result) {
  if (torch_layer::is_graph_float(left) || torch_layer::is_graph_float(right)) {
    std::optional<torch_layer::Tracer::Decision> made = capture.tracer->decide(op, left, right);
    if (!made) return false;
    if (made->check)
      capture.guards.add_check(capture.primal_origins[static_cast<size_t>(made->primal)], std::move(made->check));
    *result = Ref::borrow(made->holds ? Py_True : Py_False);
    return true;
  }
  std::optional<ir::Sym> a, b;
  if (!operands(capture, left, right, &a, &b)) return false;
  const bool swap = op == Py_GT || op == Py_GE;
  const ir::Relation relation = op == Py_EQ                  ? ir::Relation::Eq
                                : op == Py_NE                ? ir::Relation::Ne
                                : op == Py_LT || op == Py_GT ? ir::Relation::Lt
                                                             : ir::Relation::Le;
  const bool holds = capture.shapes.guard(relation, swap ? *b : *a, swap ? *a : *b);
  *result = Ref::borrow(holds ? Py_True : Py_False);
  return true;
}

}  // namespace graphlift::capture
