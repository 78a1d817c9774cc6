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

// Shifts and masks by a constant, as products, quotients and remainders; squares.
std::optional<ir::Sym> by_constant(int op, const ir::Sym& a, const ir::Sym& b) {
  if (!b.is_constant() || b.constant() < 0) return std::nullopt;
  const int64_t number = b.constant();
  const bool shifts = number < 31, masks = number < (int64_t{1} << 31) && (number & (number + 1)) == 0;
  switch (op) {
    case 1:  // NB_AND
      return masks ? std::optional(mod(a, ir::Sym(number + 1))) : std::nullopt;
    case 3:  // NB_LSHIFT
      return shifts ? std::optional(a * ir::Sym(int64_t{1} << number)) : std::nullopt;
    case 9:  // NB_RSHIFT
      return shifts ? std::optional(floordiv(a, ir::Sym(int64_t{1} << number))) : std::nullopt;
    case 8:  // NB_POWER
      return number == 2 ? std::optional(a * a) : std::nullopt;
    default:
      return std::nullopt;
  }
}

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
      value = by_constant(op % kInplace, *a, *b);
      if (!value) return false;
  }
  *result = value->is_constant() ? Ref::steal(PyLong_FromLongLong(value->constant())) : capture.tracer->sym_int(*value);
  return true;
}

Ref without_symbols(Capture& capture, PyObject* object) {
  if (!PyTuple_Check(object) && !PyList_CheckExact(object)) return capture.concrete(object);
  const bool sizes = torch_layer::is_torch_size(object);
  if (!PyList_CheckExact(object) && !PyTuple_CheckExact(object) && !sizes) return Ref::borrow(object);
  bool found = false;
  Ref items = Ref::steal(PyList_New(0));
  for (Py_ssize_t i = 0; items && i < PySequence_Fast_GET_SIZE(object); ++i) {
    PyObject* item = PySequence_Fast_GET_ITEM(object, i);
    const Ref plain = without_symbols(capture, item);
    if (!plain || PyList_Append(items.get(), plain.get()) < 0) return Ref();
    found |= plain.get() != item;
  }
  if (!items || !found) return items ? Ref::borrow(object) : Ref();
  if (sizes) return Ref::steal(PyObject_CallOneArg(reinterpret_cast<PyObject*>(Py_TYPE(object)), items.get()));
  return PyList_CheckExact(object) ? items : Ref::steal(PyList_AsTuple(items.get()));
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
