// Owns: operators, comparisons, truth and identity while capturing; see items.h.
#include "capture/arrays.h"
#include "capture/attributes.h"
#include "capture/c_calls.h"
#include "capture/c_reads.h"
#include "capture/calls.h"
#include "capture/computed_arrays.h"
#include "capture/containers.h"
#include "capture/control_flow.h"
#include "capture/dynamo_calls.h"
#include "capture/expectations.h"
#include "capture/gradient_hooks.h"
#include "capture/items.h"
#include "capture/set_order.h"
#include "cpython/imported.h"
#include "eval/semantics.h"

namespace graphlift::capture {

using guards::GuardKind;

bool fix_value(Capture& capture, PyObject* object) {
  Outside* outside = capture.objects.find(object);
  if (!outside) return true;
  PyTypeObject* base = solid_base(Py_TYPE(object));
  const bool value = base == &PyLong_Type || base == &PyFloat_Type || base == &PyUnicode_Type ||
                     base == &PyBytes_Type || base == &PyComplex_Type || base == &PyBool_Type;
  if (value) capture.guards.add(outside->origin, GuardKind::Is, object);
  return value;
}

namespace {

// What an operator of C code gets for an operand. Null: break pending.
Ref operand(Capture& capture, PyObject* object) {
  Outside* outside = capture.objects.find(object);
  if (!outside) return Ref::borrow(object);
  if (container_kind(object) != Kind::None) return for_c_code(capture, object);
  if (fix_value(capture, object) || is_python_class(Py_TYPE(object))) return Ref::borrow(object);
  if (PyFunction_Check(object) || PyMethod_Check(object)) return Ref::borrow(object);
  if (is_array(object)) return break_here(capture, "array_arithmetic", "an operator");
  return break_here(capture, "unsupported_operator", Py_TYPE(object)->tp_name);
}

bool is_symbolic_pair(PyObject* a, PyObject* b) {
  return torch_layer::is_sym_scalar(a) || torch_layer::is_sym_scalar(b);
}

// Symbolic ints stay next to tensors; next to anything else they become numbers.
void settle_symbolic(Capture& capture, Ref* a, Ref* b) {
  if (!is_symbolic_pair(a->get(), b->get())) return;
  if (torch_layer::is_stand_in(a->get()) || torch_layer::is_stand_in(b->get())) return;
  *a = capture.concrete(a->get());
  *b = capture.concrete(b->get());
}

eval::Semantics& plain() {
  static eval::Semantics semantics;
  return semantics;
}

bool is_inplace(int op) { return op >= 13; }

// -s stays symbolic, +s is s; anything else makes a number of it.
Ref symbolic_negative(Capture& capture, int op, PyObject* value) {
  std::optional<ir::Sym> sym = capture.tracer->sym_of(value);
  if (sym && op == eval::kNegative) return capture.tracer->sym_int(-*sym);
  if (sym && op == eval::kPositive) return Ref::borrow(value);
  if (op == eval::kNegative && torch_layer::is_graph_float(value)) {  // the sign of zero, too
    Ref minus = Ref::steal(PyFloat_FromDouble(-1));
    return minus ? capture.tracer->arithmetic(torch_layer::Arithmetic::Mul, value, minus.get()) : Ref();
  }
  return capture.concrete(value);
}

// Names of Python's `operator`, by NB_* and Py_* numbers.
constexpr const char* kBinaryNames[] = {"add",  "and_",      "floordiv", "lshift",   "matmul",  "mul",  "mod",
                                        "or_",  "pow",       "rshift",   "sub",      "truediv", "xor",  "iadd",
                                        "iand", "ifloordiv", "ilshift",  "imatmul",  "imul",    "imod", "ior",
                                        "ipow", "irshift",   "isub",     "itruediv", "ixor"};
constexpr const char* kCompareNames[] = {"lt", "le", "eq", "ne", "gt", "ge"};

// An operator on a tensor is one call of the program's, whoever asked for those records.
template <class Body>
Ref as_call(Capture& capture, const char* name, std::initializer_list<PyObject*> operands, Body&& body) {
  torch_layer::ProgramCalls* calls = capture.tracer->calls();
  bool any = false, known = true;
  for (PyObject* operand : operands) {
    const bool tensor = torch_layer::is_stand_in(operand);
    any |= tensor;
    known &= tensor || is_value_constant(operand) || torch_layer::is_sym_scalar(operand);
  }
  if (!calls || !any || !known || !calls->watching()) return body();
  const Ref function = cpython::imported("operator", name);
  const Ref args = Ref::steal(PyTuple_New(static_cast<Py_ssize_t>(operands.size())));
  if (!function || !args) return Ref();
  Py_ssize_t at = 0;
  for (PyObject* operand : operands) PyTuple_SET_ITEM(args.get(), at++, Py_NewRef(operand));
  return calls->call(function.get(), args.get(), nullptr, body);
}

}  // namespace

Ref unary(Capture& capture, int op, PyObject* value) {
  if (is_array(value) && op != eval::kPositive)
    return array_operator(capture, op == eval::kNegative ? "neg" : "invert", {value});
  Ref a = torch_layer::is_sym_scalar(value) ? symbolic_negative(capture, op, value) : operand(capture, value);
  if (a && torch_layer::is_sym_scalar(value) && torch_layer::is_sym_scalar(a.get())) return a;
  if (!a) return a;
  const char* name = op == eval::kNegative ? "neg" : op == eval::kPositive ? "pos" : "invert";
  Ref result = with_array_numbers(capture, {a.get()}, [&] {
    return as_call(capture, name, {a.get()}, [&] { return plain().unary(op, a.get()); });
  });
  return capture.pending ? Ref() : std::move(result);
}

constexpr int kRemainder = 6;  // NB_REMAINDER

Ref binary(Capture& capture, int op, PyObject* left, PyObject* right) {
  if (Ref result; symbolic_binary(capture, op, left, right, &result)) return result;
  if (capture.pending) return Ref();
  if (is_array(left) || is_array(right)) return array_operator(capture, kBinaryNames[op], {left, right});
  Ref a = operand(capture, left);
  Ref b = a ? operand(capture, right) : Ref();
  if (!b) return b;
  settle_symbolic(capture, &a, &b);
  if (!a || !b) return Ref();
  const bool text = op == kRemainder && (PyUnicode_Check(a.get()) || PyBytes_Check(a.get()));
  if (text && !look_at(capture, b.get(), Look::Reads)) return Ref();
  for (PyObject* side : {a.get(), b.get()})
    if (!order_goes_on(capture, side) ||
        (container_kind(side) == Kind::DictView && !look_at(capture, side, Look::Compares)))
      return Ref();
  if (is_inplace(op) && container_kind(left) != Kind::None && !may_act(capture)) return Ref();
  if (is_inplace(op) && a.get() != left) note_mutation(capture, left);
  Ref result = with_array_numbers(capture, {a.get(), b.get()}, [&] {
    return as_call(capture, kBinaryNames[op], {a.get(), b.get()}, [&] { return plain().binary(op, a.get(), b.get()); });
  });
  if (capture.pending) return Ref();
  if (text) {
    PyObject* const sides[] = {a.get(), b.get()};
    return without_address(capture, std::move(result), sides, 2);
  }
  // `x += y` on an immutable outside container makes a new object: only the very shadow maps back.
  return from_c_code(capture, std::move(result));
}

Ref compare(Capture& capture, int op, PyObject* left, PyObject* right) {
  if (Ref result; symbolic_compare(capture, op, left, right, &result)) return result;
  if (is_array(left) || is_array(right)) return array_operator(capture, kCompareNames[op], {left, right});
  Ref a = operand(capture, left);
  Ref b = a ? operand(capture, right) : Ref();
  if (!b) return b;
  if (holds_outside_container(capture, a.get()) || holds_outside_container(capture, b.get()))
    return break_here(capture, "nested_outside", "a comparison");
  // object's own == is identity.
  settle_symbolic(capture, &a, &b);
  if (!a || !b) return Ref();
  for (PyObject* side : {a.get(), b.get()})
    if (!PyFunction_Check(side) && !is_plain_instance(side) && !torch_layer::is_stand_in(side) &&
        !look_at(capture, side, Look::Compares))
      return Ref();
  const bool by_identity = Py_TYPE(left)->tp_richcompare == PyBaseObject_Type.tp_richcompare &&
                           Py_TYPE(right)->tp_richcompare == PyBaseObject_Type.tp_richcompare;
  if (by_identity && (op == Py_EQ || op == Py_NE) && is_same(capture, left, right) < 0) return Ref();
  Ref result = with_array_numbers(capture, {a.get(), b.get()}, [&] {
    return as_call(capture, kCompareNames[op], {a.get(), b.get()},
                   [&] { return plain().compare(op, a.get(), b.get()); });
  });
  return capture.pending ? Ref() : std::move(result);
}

int is_same(Capture& capture, PyObject* left, PyObject* right) {
  const bool same = left == right;
  Outside* a = capture.objects.find(left);
  Outside* b = capture.objects.find(right);
  if (!same && capture.tensor_of_stand_in.count(left) && capture.tensor_of_stand_in.count(right))
    capture.told_apart.insert(left);
  if (same || !a || !b) return same;
  capture.guards.add(a->origin, GuardKind::NotSameAs, nullptr, b->origin);
  return 0;
}

namespace {

// In the functions that stand for torch.cond and torch.while_loop it is where graphs end by design.
const char* branch_break(const Capture& capture) {
  return in_module(capture, "graphlift.substitutes") ? kControlFlowBreak : "data_dependent_branch";
}

}  // namespace

int truth(Capture& capture, PyObject* value) {
  if (value == Py_True) return 1;
  if (value == Py_False || value == Py_None) return 0;
  if (torch_layer::is_stand_in(value)) {
    if (const std::optional<bool> expected = expected_truth(capture, value)) return *expected;
    if (!capture.pending && !PyErr_Occurred()) break_here(capture, branch_break(capture));
    return -1;
  }
  if (std::optional<ir::Sym> sym = torch_layer::is_sym_scalar(value) ? capture.tracer->sym_of(value) : std::nullopt)
    return capture.shapes.guard(ir::Relation::Ne, *sym, ir::Sym(0));
  if (torch_layer::is_sym_scalar(value)) {
    Ref number = capture.concrete(value);
    return number ? PyObject_IsTrue(number.get()) : -1;
  }
  Outside* outside = capture.objects.find(value);
  if (!outside) {
    const int result = PyObject_IsTrue(value);
    return capture.pending ? -1 : result;
  }
  if (container_kind(value) != Kind::None && !is_python_class(Py_TYPE(value))) {
    Ref size = length(capture, value);
    return size ? PyObject_IsTrue(size.get()) : -1;
  }
  if (fix_value(capture, value)) return PyObject_IsTrue(value);
  for (const char* name : {"__bool__", "__len__"}) {
    Ref method = special_method(capture, value, name);
    if (PyErr_Occurred()) return -1;
    if (!method) continue;
    if (!PyMethod_Check(method.get()) && container_kind(value) != Kind::None) {
      Ref size = length(capture, value);
      return size ? PyObject_IsTrue(size.get()) : -1;
    }
    if (!PyMethod_Check(method.get())) return break_status(capture, "unsupported_truth", Py_TYPE(value)->tp_name);
    Ref result = call(capture, method.get(), nullptr, 0, nullptr);
    return result ? truth(capture, result.get()) : -1;
  }
  if (Py_TYPE(value)->tp_as_number && Py_TYPE(value)->tp_as_number->nb_bool && !is_python_class(Py_TYPE(value)))
    return break_status(capture, "unsupported_truth", Py_TYPE(value)->tp_name);
  return 1;
}

}  // namespace graphlift::capture
