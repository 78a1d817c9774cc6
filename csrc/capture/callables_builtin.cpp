// Owns: rows and rules for Python's builtins.
// Must not: list methods of builtin types (whole types are known, see callables.cpp) except where a rule reads less.
#include "base/once.h"
#include "capture/arrays.h"
#include "capture/attributes.h"
#include "capture/c_calls.h"
#include "capture/callables.h"
#include "capture/callables_parameters.h"
#include "capture/calls.h"
#include "capture/computed_arrays.h"
#include "capture/containers.h"
#include "capture/gradient_hooks.h"
#include "capture/items.h"
#include "cpython/hook.h"
#include "cpython/imported.h"

namespace graphlift::capture {

using guards::GuardKind;

namespace {

bool arity(const CallArgs& call, Py_ssize_t least, Py_ssize_t most) {
  return !call.kwnames && call.nargs >= least && call.nargs <= most;
}

// The plain call raises CPython's own error for a wrong number of arguments.
Ref wrong_call(const CallArgs& call) {
  return Ref::steal(PyObject_Vectorcall(call.callable, call.args, static_cast<size_t>(call.nargs), call.kwnames));
}

Ref rule_len(Capture& c, const CallArgs& call) {
  return arity(call, 1, 1) ? length(c, call.args[0]) : wrong_call(call);
}

Ref rule_iter(Capture& c, const CallArgs& call) {
  return arity(call, 1, 1) ? iterate(c, call.args[0]) : run_prepared(c, call, kShallow | kCallsFirst);
}

Ref rule_next(Capture& c, const CallArgs& call) {
  if (!arity(call, 1, 2)) return wrong_call(call);
  Ref value = next(c, call.args[0]);
  if (value || PyErr_Occurred()) return value;
  if (call.nargs == 2) return Ref::borrow(call.args[1]);
  PyErr_SetNone(PyExc_StopIteration);
  return Ref();
}

Ref rule_getattr(Capture& c, const CallArgs& call) {
  if (!arity(call, 2, 3) || !PyUnicode_Check(call.args[1])) return wrong_call(call);
  fix_value(c, call.args[1]);
  Ref value = get_attr(c, call.args[0], call.args[1]);
  if (value || call.nargs == 2 || c.pending || !PyErr_ExceptionMatches(PyExc_AttributeError)) return value;
  PyErr_Clear();
  return Ref::borrow(call.args[2]);
}

Ref rule_hasattr(Capture& c, const CallArgs& call) {
  if (!arity(call, 2, 2) || !PyUnicode_Check(call.args[1])) return wrong_call(call);
  fix_value(c, call.args[1]);
  Ref value = get_attr(c, call.args[0], call.args[1]);
  if (value) return Ref::borrow(Py_True);
  if (c.pending || !PyErr_ExceptionMatches(PyExc_AttributeError)) return Ref();
  PyErr_Clear();
  return Ref::borrow(Py_False);
}

Ref rule_setattr(Capture& c, const CallArgs& call) {
  if (!arity(call, 3, 3) || !PyUnicode_Check(call.args[1])) return wrong_call(call);
  fix_value(c, call.args[1]);
  return set_attr(c, call.args[0], call.args[1], call.args[2]) < 0 ? Ref() : Ref::borrow(Py_None);
}

Ref rule_delattr(Capture& c, const CallArgs& call) {
  if (!arity(call, 2, 2) || !PyUnicode_Check(call.args[1])) return wrong_call(call);
  fix_value(c, call.args[1]);
  return set_attr(c, call.args[0], call.args[1], nullptr) < 0 ? Ref() : Ref::borrow(Py_None);
}

Ref rule_generic_setattr(Capture& c, const CallArgs& call) {
  if (!arity(call, 3, 3)) return wrong_call(call);
  return generic_set_attr(c, call.args[0], call.args[1], call.args[2]) < 0 ? Ref() : Ref::borrow(Py_None);
}

Ref rule_generic_delattr(Capture& c, const CallArgs& call) {
  if (!arity(call, 2, 2)) return wrong_call(call);
  return generic_set_attr(c, call.args[0], call.args[1], nullptr) < 0 ? Ref() : Ref::borrow(Py_None);
}

Ref rule_generic_getattr(Capture& c, const CallArgs& call) {
  return arity(call, 2, 2) ? generic_get_attr(c, call.args[0], call.args[1], nullptr) : wrong_call(call);
}

Ref rule_type_getattr(Capture& c, const CallArgs& call) {
  return arity(call, 2, 2) ? get_attr(c, call.args[0], call.args[1]) : wrong_call(call);
}

// A symbolic number is a number to the program.
Ref rule_isinstance(Capture& c, const CallArgs& call) {
  if (!arity(call, 2, 2)) return wrong_call(call);
  Ref types = for_c_code(c, call.args[1]);
  if (!types) return Ref();
  Ref object = Ref::borrow(call.args[0]);
  if (torch_layer::is_sym_scalar(object.get()))
    object = Ref::steal(torch_layer::is_graph_float(object.get()) ? PyFloat_FromDouble(2) : PyLong_FromLong(2));
  const int result = object ? PyObject_IsInstance(object.get(), types.get()) : -1;
  return result < 0 || c.pending ? Ref() : Ref::borrow(result ? Py_True : Py_False);
}

Ref rule_type(Capture& c, const CallArgs& call) {
  if (!arity(call, 1, 1)) return run_prepared(c, call, kShallow);
  if (torch_layer::is_sym_scalar(call.args[0]))
    return Ref::borrow(
        reinterpret_cast<PyObject*>(torch_layer::is_graph_float(call.args[0]) ? &PyFloat_Type : &PyLong_Type));
  return Ref::borrow(reinterpret_cast<PyObject*>(Py_TYPE(call.args[0])));
}

Ref rule_callable(Capture&, const CallArgs& call) {
  return arity(call, 1, 1) ? Ref::borrow(PyCallable_Check(call.args[0]) ? Py_True : Py_False) : wrong_call(call);
}

Ref rule_vars(Capture& c, const CallArgs& call) {
  if (!arity(call, 1, 1)) return break_here(c, "unknown_callable", "vars() or locals()");
  Ref name = Ref::steal(PyUnicode_InternFromString("__dict__"));
  return get_attr(c, call.args[0], name.get());
}

// Whether an address only tells objects apart and is gone then: the memo of a copy, a hash.
bool only_tells_apart(Capture& c) {
  if (is_key_hash(c)) return c.address_hashed = true;
  PyObject* function = c.frames.back().function();
  PyObject* module = function ? PyDict_GetItemString(PyFunction_GET_GLOBALS(function), "__name__") : nullptr;
  return module && PyUnicode_Check(module) && PyUnicode_CompareWithASCIIString(module, "copy") == 0;
}

// The address of an object from outside is another one in a later call.
Ref rule_id(Capture& c, const CallArgs& call) {
  PyObject* object = call.nargs == 1 && !call.kwnames ? call.args[0] : nullptr;
  if (!object || (!c.is_outside(object) && !c.tensor_of_stand_in.count(object))) return run_prepared(c, call, kShallow);
  if (only_tells_apart(c)) {
    c.told_apart.insert(object);
  } else {
    // The guard holds the object weakly; one that can't be held so would live as long as the region.
    if (!c.is_outside(object) || !PyType_SUPPORTS_WEAKREFS(Py_TYPE(object)))
      return break_here(c, "unknown_callable", "id() of an object from outside");
    c.guards.add(c.origin_of(object), GuardKind::Is, object);
  }
  return Ref::steal(PyLong_FromVoidPtr(object));
}

Ref rule_build_class(Capture& c, const CallArgs& call) {
  Ref made = Ref::steal(PyObject_Vectorcall(call.callable, call.args, static_cast<size_t>(call.nargs), call.kwnames));
  if (c.pending) return Ref();
  if (made) c.fresh_types.insert(made.get());
  if (made) c.keep_alive.push_back(made);
  return made;
}

Ref rule_globals(Capture& c, const CallArgs&) { return Ref::borrow(c.frames.back().globals()); }

// Text of an object: tensors need data, symbolic ints become numbers.
Ref rule_text(Capture& c, const CallArgs& call) {
  for (Py_ssize_t i = 0; i < call.nargs; ++i)
    if (torch_layer::is_stand_in(call.args[i])) return break_here(c, "tensor_text", describe(call.callable));
  if (call.nargs != 1 || call.kwnames) return run_prepared(c, call, kPure);
  if (is_array_kind(call.args[0])) {  // numpy makes the text in Python of its own
    const cpython::HookScope nobody(nullptr);
    return run_prepared(c, call, kPure);
  }
  const Ref plain = without_symbols(c, call.args[0]);
  PyObject* const args[] = {plain.get()};
  return plain ? run_prepared(c, {call.callable, args, 1, nullptr}, kPure) : Ref();
}

Ref rule_number(Capture& c, const CallArgs& call) {
  if (call.nargs > 0 && torch_layer::is_stand_in(call.args[0]))
    return break_here(c, "data_dependent_number", describe(call.callable));
  if (call.nargs == 1 && call.callable == reinterpret_cast<PyObject*>(&PyLong_Type) &&
      torch_layer::is_sym_scalar(call.args[0]) && !torch_layer::is_graph_float(call.args[0]))
    return Ref::borrow(call.args[0]);
  if (call.nargs == 1 && call.callable == reinterpret_cast<PyObject*>(&PyFloat_Type) &&
      torch_layer::is_sym_scalar(call.args[0])) {
    if (torch_layer::is_graph_float(call.args[0])) return Ref::borrow(call.args[0]);
    Ref one = Ref::steal(PyFloat_FromDouble(1));
    Ref real = one ? c.tracer->arithmetic(torch_layer::Arithmetic::Mul, call.args[0], one.get()) : Ref();
    if (real || PyErr_Occurred()) return real;
  }
  return run_prepared(c, call, kPure);
}

Ref rule_bool(Capture& c, const CallArgs& call) {
  if (!arity(call, 1, 1)) return wrong_call(call);
  const int value = truth(c, call.args[0]);
  return value < 0 ? Ref() : Ref::borrow(value ? Py_True : Py_False);
}

Ref rule_range(Capture& c, const CallArgs& call) { return run_prepared(c, call, kPure); }

// dict.get, dict.__getitem__, dict.__contains__, dict.setdefault, dict.pop: guard their key only.
Ref rule_dict_get(Capture& c, const CallArgs& call) {
  if (!arity(call, 2, 3) || !PyDict_Check(call.args[0])) return wrong_call(call);
  Ref value = dict_get(c, call.args[0], call.args[1]);
  if (value || PyErr_Occurred()) return value;
  return Ref::borrow(call.nargs == 3 ? call.args[2] : Py_None);
}

Ref rule_dict_getitem(Capture& c, const CallArgs& call) {
  if (!arity(call, 2, 2) || !PyDict_Check(call.args[0])) return wrong_call(call);
  Ref value = dict_get(c, call.args[0], call.args[1]);
  if (!value && !PyErr_Occurred()) PyErr_SetObject(PyExc_KeyError, call.args[1]);
  return value;
}

Ref rule_dict_contains(Capture& c, const CallArgs& call) {
  if (!arity(call, 2, 2) || !PyDict_Check(call.args[0])) return wrong_call(call);
  Ref value = dict_get(c, call.args[0], call.args[1]);
  if (!value && PyErr_Occurred()) return Ref();
  return Ref::borrow(value ? Py_True : Py_False);
}

Ref rule_dict_setitem(Capture& c, const CallArgs& call) {
  if (!arity(call, 3, 3) || !PyDict_Check(call.args[0])) return wrong_call(call);
  return dict_set(c, call.args[0], call.args[1], call.args[2]) < 0 ? Ref() : Ref::borrow(Py_None);
}

Ref rule_dict_delitem(Capture& c, const CallArgs& call) {
  if (!arity(call, 2, 2) || !PyDict_Check(call.args[0])) return wrong_call(call);
  return dict_set(c, call.args[0], call.args[1], nullptr) < 0 ? Ref() : Ref::borrow(Py_None);
}

Ref rule_dict_setdefault(Capture& c, const CallArgs& call) {
  if (!arity(call, 2, 3) || !PyDict_Check(call.args[0])) return wrong_call(call);
  Ref value = dict_get(c, call.args[0], call.args[1]);
  if (value || PyErr_Occurred()) return value;
  Ref fallback = Ref::borrow(call.nargs == 3 ? call.args[2] : Py_None);
  return dict_set(c, call.args[0], call.args[1], fallback.get()) < 0 ? Ref() : fallback;
}

Ref rule_dict_pop(Capture& c, const CallArgs& call) {
  if (!arity(call, 2, 3) || !PyDict_Check(call.args[0])) return wrong_call(call);
  Ref value = dict_get(c, call.args[0], call.args[1]);
  if (!value && PyErr_Occurred()) return value;
  if (value) return dict_set(c, call.args[0], call.args[1], nullptr) < 0 ? Ref() : value;
  if (call.nargs == 3) return Ref::borrow(call.args[2]);
  PyErr_SetObject(PyExc_KeyError, call.args[1]);
  return Ref();
}

// What copyreg says of a class: asked once per class, and kept in the class, in eager too.
Ref slot_names(PyTypeObject* type) {
  cpython::HookScope nobody(nullptr);
  Ref ask = cpython::imported("copyreg", "_slotnames");
  return ask ? Ref::steal(PyObject_CallOneArg(ask.get(), reinterpret_cast<PyObject*>(type))) : Ref();
}

Ref rule_reduce_ex(Capture& c, const CallArgs& call) {
  static constinit Once<PyObject*> once;
  PyObject* reduce_ex = once.get([] { return cpython::imported("graphlift.in_python", "reduce_ex").release(); });
  PyObject* self = call.nargs > 0 ? call.args[0] : nullptr;
  const bool known = arity(call, 2, 2) && PyLong_CheckExact(call.args[1]) && PyLong_AsLong(call.args[1]) >= 2;
  PyTypeObject* base = self ? solid_base(Py_TYPE(self)) : nullptr;
  if (!known || !reduce_ex || (base != &PyBaseObject_Type && !is_container_type(base)))
    return break_here(c, "unknown_callable", "builtins.object.__reduce_ex__");
  Ref slots = slot_names(Py_TYPE(self));
  if (!slots) return slots;
  PyObject* args[] = {self, call.args[1], slots.get()};
  return graphlift::capture::call(c, reduce_ex, args, 3, nullptr);
}

Ref rule_list_append(Capture& c, const CallArgs& call) {
  if (!arity(call, 2, 2) || !PyList_Check(call.args[0])) return wrong_call(call);
  if (!may_act(c)) return Ref();
  return list_append(c, call.args[0], call.args[1]) < 0 ? Ref() : Ref::borrow(Py_None);
}

// super() without arguments takes the frame's first variable, or what is in its cell, from the frame itself.
bool admit_first_local(Capture& c) {
  if (c.frames.back().code()->co_argcount == 0) return true;  // super() says so itself
  if (c.frames.size() != 1) return true;  // an inlined frame's variables were admitted where they came from
  if (!c.admit_root_local(0)) return false;
  PyObject* first = c.frames.back().locals()[0];
  Outside* cell = first && PyCell_Check(first) ? c.objects.find(first) : nullptr;
  if (!cell || !PyCell_GET(first)) return true;
  if (!cell->fields.empty())
    return static_cast<bool>(break_here(c, "unknown_callable", "super() behind an assignment"));
  Ref seen = c.admit(PyCell_GET(first), c.origins().child(cell->origin, guards::OriginKind::Cell));
  return static_cast<bool>(seen);
}

Ref rule_super(Capture& c, const CallArgs& call) {
  if (call.nargs == 0 && !admit_first_local(c)) return Ref();
  return Ref::steal(PyObject_Vectorcall(call.callable, call.args, static_cast<size_t>(call.nargs), call.kwnames));
}

// function.__get__(instance, owner): the bound method.
Ref rule_function_get(Capture& c, const CallArgs& call) {
  if (!arity(call, 2, 3) || !PyFunction_Check(call.args[0])) return wrong_call(call);
  if (know_function(c, call.args[0]) < 0) return Ref();
  if (call.args[1] == Py_None) return Ref::borrow(call.args[0]);
  return Ref::steal(PyMethod_New(call.args[0], call.args[1]));
}

}  // namespace

namespace {

// Of a symbol: itself or its opposite, with the sign guarded.
Ref rule_abs(Capture& c, const CallArgs& call) {
  if (call.nargs == 1 && is_array(call.args[0])) return array_operator(c, "abs", {call.args[0]});
  if (call.nargs != 1 || call.kwnames || !torch_layer::is_sym_scalar(call.args[0]) ||
      torch_layer::is_graph_float(call.args[0]))
    return run_prepared(c, call, kSymbolic);
  constexpr int kSubtract = 10;  // NB_SUBTRACT
  Ref zero = Ref::steal(PyLong_FromLong(0));
  Ref negative = zero ? compare(c, Py_LT, call.args[0], zero.get()) : Ref();
  const int is_negative = negative ? truth(c, negative.get()) : -1;
  if (is_negative < 0) return Ref();
  return is_negative ? binary(c, kSubtract, zero.get(), call.args[0]) : Ref::borrow(call.args[0]);
}

Ref rule_divmod(Capture& c, const CallArgs& call) {
  if (call.nargs != 2 || call.kwnames ||
      (!torch_layer::is_sym_scalar(call.args[0]) && !torch_layer::is_sym_scalar(call.args[1])))
    return run_prepared(c, call, kPure);
  constexpr int kFloorDivide = 2, kRemainder = 6;  // NB_FLOOR_DIVIDE, NB_REMAINDER
  const Ref quotient = binary(c, kFloorDivide, call.args[0], call.args[1]);
  const Ref rest = quotient ? binary(c, kRemainder, call.args[0], call.args[1]) : Ref();
  return rest ? Ref::steal(PyTuple_Pack(2, quotient.get(), rest.get())) : Ref();
}

constexpr uint16_t kChooses = kSymbolic | kCallsKey | kLooksInto | kHandsOn | kCompares;

// max(a, b) and min(a, b) of a float that the graph computes are computed there.
template <torch_layer::Arithmetic op>
Ref rule_chooses(Capture& c, const CallArgs& call) {
  const bool graph = call.nargs == 2 && !call.kwnames &&
                     (torch_layer::is_graph_float(call.args[0]) || torch_layer::is_graph_float(call.args[1]));
  if (graph)
    if (Ref chosen = c.tracer->arithmetic(op, call.args[0], call.args[1]); chosen || PyErr_Occurred()) return chosen;
  return run_prepared(c, call, kChooses);
}

}  // namespace

const Family& builtin_callables() {
  static const Family rows = {
      {"builtins.len", 0, rule_len},
      {"builtins.iter", 0, rule_iter},
      {"builtins.next", 0, rule_next},
      {"builtins.getattr", 0, rule_getattr},
      {"builtins.hasattr", 0, rule_hasattr},
      {"builtins.setattr", 0, rule_setattr},
      {"builtins.delattr", 0, rule_delattr},
      {"builtins.isinstance", 0, rule_isinstance},
      {"builtins.issubclass", kShallow, nullptr},
      {"builtins.callable", 0, rule_callable},
      {"builtins.vars", 0, rule_vars},
      {"builtins.hash", 0, hash_call},
      {"builtins.globals", 0, rule_globals},
      {"types.FunctionType.__get__", 0, rule_function_get},
      {"builtins.__build_class__", 0, rule_build_class},
      {"builtins.print", 0, print_call},
      {"builtins.repr", 0, rule_text},
      {"builtins.ascii", 0, rule_text},
      {"builtins.format", 0, rule_text},
      {"builtins.id", 0, rule_id},
      {"builtins.abs", kSymbolic, rule_abs},
      {"builtins.all", kLooksInto, nullptr},
      {"builtins.any", kLooksInto, nullptr},
      {"builtins.bin", 0, nullptr},
      {"builtins.chr", 0, nullptr},
      {"builtins.compile", 0, nullptr},
      {"builtins.divmod", kSymbolic, rule_divmod},
      {"builtins.hex", 0, nullptr},
      {"builtins.max", kChooses, rule_chooses<torch_layer::Arithmetic::Max>},
      {"builtins.min", kChooses, rule_chooses<torch_layer::Arithmetic::Min>},
      {"builtins.oct", 0, nullptr},
      {"builtins.ord", 0, nullptr},
      {"builtins.pow", kSymbolic, nullptr},
      {"builtins.round", 0, nullptr},
      {"builtins.sorted", kShallow | kCallsKey | kLooksInto | kHandsOn | kCompares, nullptr},
      {"builtins.sum", kSymbolic | kLooksInto, nullptr},
      {"builtins.object.__setattr__", 0, rule_generic_setattr},
      {"builtins.object.__delattr__", 0, rule_generic_delattr},
      {"builtins.object.__getattribute__", 0, rule_generic_getattr},
      {"builtins.object.__reduce_ex__", 0, rule_reduce_ex},
      {"builtins.type.__getattribute__", 0, rule_type_getattr},
      {"builtins.list.append", 0, rule_list_append},
      {"builtins.list.sort", kShallow | kMutates | kCallsKey | kLooksInto | kHandsOn | kCompares, nullptr},
      {"builtins.object.__init__", kShallow, nullptr},
      {"builtins.object.__new__", kShallow, nullptr},
      {"builtins.list.__new__", kShallow, nullptr},
      {"builtins.dict.__new__", kShallow, nullptr},
      {"builtins.dict.get", 0, rule_dict_get},
      {"builtins.dict.__getitem__", 0, rule_dict_getitem},
      {"builtins.dict.__contains__", 0, rule_dict_contains},
      {"builtins.dict.__setitem__", 0, rule_dict_setitem},
      {"builtins.dict.__delitem__", 0, rule_dict_delitem},
      {"builtins.dict.setdefault", 0, rule_dict_setdefault},
      {"builtins.dict.pop", 0, rule_dict_pop},
  };
  return rows;
}

namespace {

// Without a callback. Of a tensor only the stand-in is here.
Ref rule_weakref(Capture& c, const CallArgs& call) {
  const bool plain = (call.nargs == 1 || (call.nargs == 2 && call.args[1] == Py_None)) && !call.kwnames;
  if (!plain || c.tensor_of_stand_in.count(call.args[0]) || torch_layer::is_sym_scalar(call.args[0]))
    return break_here(c, "unknown_callable", describe(call.callable));
  return Ref::steal(PyWeakref_NewRef(call.args[0], nullptr));
}

Ref rule_lru_cache(Capture& c, const CallArgs& call) {
  if (call.nargs == 0 || !c.fresh_functions.count(call.args[0]))
    return break_here(c, "unknown_callable", describe(call.callable));
  Ref made = run_prepared(c, call, kShallow);
  if (!made) return made;
  c.fresh_functions.insert(made.get());
  c.keep_alive.push_back(made);
  return made;
}

}  // namespace

const Family& constructor_rows() {
  static const Family rows = {
      {"builtins.type", 0, rule_type},
      {"builtins.bool", 0, rule_bool},
      {"builtins.int", 0, rule_number},
      {"builtins.float", 0, rule_number},
      {"builtins.complex", 0, rule_number},
      {"builtins.str", 0, rule_text},
      {"builtins.range", 0, rule_range},
      {"builtins.super", 0, rule_super},
      {"builtins.tuple", kShallow | kSymbolic, nullptr},
      {"builtins.list", kShallow | kSymbolic, nullptr},
      {"builtins.dict", kShallow | kSymbolic | kLooksInto | kMakesDict, nullptr},
      {"builtins.set", kShallow | kLooksInto | kHandsOn | kCompares, nullptr},
      {"builtins.frozenset", kShallow | kLooksInto | kHandsOn | kCompares, nullptr},
      {"builtins.slice", kShallow | kSymbolic, nullptr},
      {"builtins.enumerate", kShallow, nullptr},
      {"builtins.zip", kShallow, nullptr},
      {"builtins.map", kShallow | kCallsFirst, nullptr},
      {"builtins.filter", kShallow | kCallsFirst | kLooksInto | kHandsOn | kReads, nullptr},
      {"builtins.reversed", kShallow, nullptr},
      {"builtins.property", kShallow, nullptr},
      {"weakref.ReferenceType", 0, rule_weakref},
      {"functools._lru_cache_wrapper", 0, rule_lru_cache},
      {"torch._C.Generator", 0, make_generator},
      {"builtins.staticmethod", kShallow, nullptr},
      {"builtins.classmethod", kShallow, nullptr},
      {"collections.OrderedDict", kShallow | kLooksInto | kMakesDict, nullptr},
      {"collections.defaultdict", kShallow | kLooksInto | kMakesDict, nullptr},
      {"collections.deque", kShallow, nullptr},
      {"functools.partial", kShallow, nullptr},
      {"itertools.chain", kShallow, nullptr},
      {"itertools.count", kShallow, nullptr},
      {"itertools.cycle", kShallow, nullptr},
      {"itertools.repeat", kShallow, nullptr},
      {"itertools.islice", kShallow, nullptr},
      {"itertools.product", kShallow, nullptr},
      {"itertools.permutations", kShallow, nullptr},
      {"itertools.combinations", kShallow, nullptr},
      {"itertools.combinations_with_replacement", kShallow, nullptr},
      {"itertools.accumulate", kShallow | kCallsSecond | kLooksInto | kHandsOn | kReads, nullptr},
      {"itertools.starmap", kShallow | kCallsFirst | kLooksInto, nullptr},
      {"itertools.takewhile", kShallow | kCallsFirst, nullptr},
      {"itertools.dropwhile", kShallow | kCallsFirst, nullptr},
      {"itertools.groupby", kShallow | kCallsSecond | kLooksInto | kHandsOn | kCompares, nullptr},
      {"itertools.zip_longest", kShallow, nullptr},
      {"itertools.pairwise", kShallow, nullptr},
      {"itertools.compress", kShallow, nullptr},
      {"itertools.filterfalse", kShallow | kCallsFirst, nullptr},
      {"operator.itemgetter", kShallow, nullptr},
      {"operator.attrgetter", kShallow, nullptr},
      {"operator.methodcaller", kShallow, nullptr},
      {"types.SimpleNamespace", kShallow, nullptr},
      {"types.MethodType", kShallow, nullptr},
      {"torch._C.DisableTorchFunctionSubclass", 0, nullptr},
      {"torch.nn.parameter.Parameter", 0, parameter_call},
      {"torch.nn.parameter.Buffer", 0, buffer_call},
  };
  return rows;
}

}  // namespace graphlift::capture
