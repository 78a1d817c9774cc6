// Owns: see semantics.h.
#include "capture/semantics.h"

#include <optional>

#include "base/log.h"
#include "capture/arrays.h"
#include "capture/attributes.h"
#include "capture/c_calls.h"
#include "capture/c_proxies.h"
#include "capture/c_reads.h"
#include "capture/calls.h"
#include "capture/containers.h"
#include "capture/drops.h"
#include "capture/gradient_hooks.h"
#include "capture/imports.h"
#include "capture/items.h"
#include "capture/set_order.h"
#include "cpython/decode.h"
#include "cpython/hook.h"

namespace graphlift::capture {

using guards::OriginKind;

namespace {

bool reads_slot(cpython::Micro micro) {
  using cpython::Micro;
  switch (micro) {
    case Micro::LoadFast:
    case Micro::LoadFastAndClear:
    case Micro::DeleteFast:
    case Micro::MakeCell:
    case Micro::LoadDeref:
    case Micro::StoreDeref:
    case Micro::DeleteDeref:
    case Micro::LoadFromDictOrDeref:
      return true;
    default:
      return false;
  }
}

}  // namespace

size_t CaptureSemantics::born_at(PyObject* object) const {
  auto found = births_.find(object);
  return found == births_.end() ? 0 : found->second;
}

// Outside values in local slots of the root are read when the program reads them, not before.
bool CaptureSemantics::touch_local(cpython::Frame& frame, int unit) {
  touched_.resize(static_cast<size_t>(frame.local_count()), false);
  const cpython::Decoded& decoded = cpython::decode(frame.code());
  const cpython::Instruction& instruction = decoded.at_unit(unit);
  for (int i = instruction.micro_begin; i < instruction.micro_end; ++i) {
    const cpython::MicroOp& op = decoded.micros[static_cast<size_t>(i)];
    const bool drops = op.micro == cpython::Micro::StoreFast || op.micro == cpython::Micro::DeleteFast;
    if (drops && !let_go(capture_, frame, op.arg, touched_[static_cast<size_t>(op.arg)])) return false;
    if (op.micro == cpython::Micro::StoreFast) touched_[static_cast<size_t>(op.arg)] = true;
    if (op.micro == cpython::Micro::CopyFreeVars) {
      for (int slot = frame.local_count() - op.arg; slot < frame.local_count(); ++slot)
        touched_[static_cast<size_t>(slot)] = true;
    }
    if (!reads_slot(op.micro)) continue;
    const auto slot = static_cast<size_t>(op.arg);
    PyObject*& value = frame.locals()[slot];
    if (op.micro == cpython::Micro::MakeCell && !value) touched_[slot] = true;  // a fresh, empty cell
    if (!admit_local(frame, op.arg)) return false;
  }
  return true;
}

bool CaptureSemantics::admit_local(cpython::Frame& frame, int slot) {
  touched_.resize(static_cast<size_t>(frame.local_count()), false);
  PyObject*& value = frame.locals()[slot];
  if (touched_[static_cast<size_t>(slot)] || !value) return true;
  Ref seen = capture_.admit(value, capture_.root_local(slot));
  if (!seen) return false;
  touched_[static_cast<size_t>(slot)] = true;
  PyObject* before = value;
  value = seen.release();
  Py_DECREF(before);
  return true;
}

eval::Step CaptureSemantics::before(cpython::Frame& frame, int unit) {
  if (unwinding()) return eval::Step::Stop;
  ++capture_.instructions;
  note_standing(capture_, frame, unit);
  if (capture_.instructions == depth_stop_) {
    at_depth_();
    left_ = true;
    return eval::Step::Stop;
  }
  if (capture_.instructions > capture_.limits.instructions ||
      ((capture_.instructions & 1023) == 0 && capture_.tracer->call_count() > capture_.limits.graph_calls)) {
    frame.set_executing(unit);
    break_here(capture_, "budget", "its limit of instructions or operator calls");
    PyErr_Clear();
    return eval::Step::Stop;
  }
  if (frame.raw() != root_) {
    note(frame, unit);
    return eval::Step::Go;
  }
  if (frame.depth() > 0) {
    PyObject* top = frame.stack()[frame.depth() - 1];
    if (top) births_.emplace(top, root_instructions_ ? root_instructions_ - 1 : 0);
  }
  if (root_instructions_ == stop_at_) return eval::Step::Stop;
  ++root_instructions_;
  last_unit_ = unit;
  frame.set_executing(unit);  // a break is told at the line that reads the variable
  const bool touched = touch_local(frame, unit);
  frame.set_position(unit);
  if (!touched) {
    if (!capture_.pending) break_here(capture_, "raises", "an error while reading a local variable");
    PyErr_Clear();
    return eval::Step::Stop;
  }
  note(frame, unit);
  return eval::Step::Go;
}

void CaptureSemantics::note(cpython::Frame& frame, int unit) {
  if (!log_on(Artifact::Bytecode)) return;
  const size_t depth = capture_.frames.empty() ? 0 : capture_.frames.size() - 1;
  capture_.evaluated.push_back({Ref::borrow(reinterpret_cast<PyObject*>(frame.code())), unit, depth});
}

Ref CaptureSemantics::unary(int op, PyObject* value) { return capture::unary(capture_, op, value); }
Ref CaptureSemantics::binary(int op, PyObject* l, PyObject* r) { return capture::binary(capture_, op, l, r); }
Ref CaptureSemantics::compare(int op, PyObject* l, PyObject* r) { return capture::compare(capture_, op, l, r); }
int CaptureSemantics::is_same(PyObject* l, PyObject* r) { return capture::is_same(capture_, l, r); }
int CaptureSemantics::contains(PyObject* c, PyObject* item) { return capture::contains(capture_, c, item); }
int CaptureSemantics::truth(PyObject* value) { return capture::truth(capture_, value); }
Ref CaptureSemantics::get_attr(PyObject* o, PyObject* name) { return capture::get_attr(capture_, o, name); }
Ref CaptureSemantics::get_method(PyObject* o, PyObject* name, Ref* self) {
  return capture::get_method(capture_, o, name, self);
}
Ref CaptureSemantics::get_super_attr(PyObject*, PyObject* type, PyObject* self, PyObject* name) {
  auto* start = reinterpret_cast<PyTypeObject*>(type);
  auto* itself = reinterpret_cast<PyTypeObject*>(self);  // of a class method; a metaclass's method has a class as well
  PyTypeObject* of = PyType_Check(self) && PyType_IsSubtype(itself, start) ? itself : Py_TYPE(self);
  return capture::get_super_attr(capture_, start, of, self, name);
}
int CaptureSemantics::set_attr(PyObject* o, PyObject* name, PyObject* v) {
  return may_act(capture_) ? capture::set_attr(capture_, o, name, v) : -1;
}
Ref CaptureSemantics::get_item(PyObject* o, PyObject* key) { return capture::get_item(capture_, o, key); }
int CaptureSemantics::set_item(PyObject* o, PyObject* key, PyObject* v) {
  return torch_layer::is_stand_in(o) || may_act(capture_) ? capture::set_item(capture_, o, key, v) : -1;
}
Ref CaptureSemantics::length(PyObject* o) { return capture::length(capture_, o); }

namespace {

PyObject* outside_dict(Capture& capture, PyObject* dict) {
  capture.know(dict, capture.origins().root(OriginKind::Constant, 0, dict));
  return dict;
}

}  // namespace

Ref CaptureSemantics::load_global(cpython::Frame& frame, PyObject* name) {
  if (PyDict_Check(frame.globals())) {
    Ref value = dict_get(capture_, outside_dict(capture_, frame.globals()), name);
    if (value || PyErr_Occurred()) return value;
  }
  if (PyDict_Check(frame.builtins())) {
    Ref value = dict_get(capture_, outside_dict(capture_, frame.builtins()), name);
    if (value || PyErr_Occurred()) return value;
  }
  return Semantics::load_global(frame, name);  // NameError in CPython's words
}

int CaptureSemantics::store_global(cpython::Frame& frame, PyObject* name, PyObject* value) {
  if (!may_act(capture_)) return -1;
  const int status = dict_set(capture_, outside_dict(capture_, frame.globals()), name, value);
  if (status < 0 && !value && !capture_.pending && PyErr_ExceptionMatches(PyExc_KeyError))
    PyErr_Format(PyExc_NameError, "name '%U' is not defined", name);
  return status;
}

Ref CaptureSemantics::load_name(cpython::Frame& frame, PyObject* name) {
  if (PyObject* locals = frame.locals_mapping(); locals && PyDict_Check(locals)) {
    Ref value = Ref::borrow(PyDict_GetItemWithError(locals, name));
    if (value || PyErr_Occurred()) return value;
  }
  return load_global(frame, name);
}

Ref CaptureSemantics::load_cell(cpython::Frame& frame, PyObject* cell) {
  Outside* outside = capture_.objects.find(cell);
  if (!outside) return Semantics::load_cell(frame, cell);
  bool written = false;
  Ref value = field_get(capture_, outside, nullptr, &written);
  if (written) return value;
  PyObject* content = PyCell_GET(cell);
  if (!content) {
    capture_.guards.add(outside->origin, guards::GuardKind::CellEmpty);
    return Ref();
  }
  return capture_.admit(content, capture_.origins().child(outside->origin, OriginKind::Cell));
}

int CaptureSemantics::store_cell(cpython::Frame& frame, PyObject* cell, PyObject* value) {
  if (!may_act(capture_)) return -1;
  Outside* outside = capture_.objects.find(cell);
  if (!outside) return Semantics::store_cell(frame, cell, value);
  field_set(capture_, outside, nullptr, value);
  return 0;
}

Ref CaptureSemantics::import_name(cpython::Frame& frame, PyObject* name, PyObject* fromlist, PyObject* level) {
  Ref absolute = Ref::borrow(name);
  if (PyLong_AsLong(level) > 0) {
    Ref util = Ref::steal(PyImport_ImportModule("importlib._bootstrap"));
    Ref package = Ref::borrow(PyDict_GetItemString(frame.globals(), "__package__"));
    if (!util || !package) return break_here(capture_, "unsupported_import", PyUnicode_AsUTF8(name));
    absolute = Ref::steal(PyObject_CallMethod(util.get(), "_resolve_name", "OOO", name, package.get(), level));
    if (!absolute) return absolute;
  }
  Ref module = loaded_module(capture_, absolute.get());
  if (!module) return module;
  if (fromlist != Py_None && PyObject_IsTrue(fromlist)) return module;
  const std::string full = PyUnicode_AsUTF8(name);
  const size_t dot = full.find('.');
  if (dot == std::string::npos || PyLong_AsLong(level) > 0) return module;
  Ref top = Ref::steal(PyUnicode_FromString(full.substr(0, dot).c_str()));
  return top ? loaded_module(capture_, top.get()) : top;
}

Ref CaptureSemantics::import_from(cpython::Frame& frame, PyObject* module, PyObject* name) {
  Ref value = capture::get_attr(capture_, module, name);
  if (value || capture_.pending || !PyErr_ExceptionMatches(PyExc_AttributeError)) return value;
  PyErr_Clear();
  Ref loaded = Semantics::import_from(frame, module, name);
  if (!loaded && PyModule_Check(module)) {
    PyErr_Clear();
    if (Ref part = torch_submodule(capture_, module, name); part || capture_.pending) return part;
    loaded = Semantics::import_from(frame, module, name);
  }
  // A package whose module of that name would be imported for real.
  const bool package = !loaded && PyModule_Check(module) && PyDict_GetItemString(PyModule_GetDict(module), "__path__");
  if (package) return break_here(capture_, "unsupported_import", PyUnicode_AsUTF8(name));
  if (loaded && !is_identity_constant(loaded.get()))
    return break_here(capture_, "unsupported_import", PyUnicode_AsUTF8(name));
  return loaded;
}

int CaptureSemantics::import_star(cpython::Frame&, PyObject*) {
  return break_status(capture_, "unsupported_import", "*");
}

Ref CaptureSemantics::call(PyObject* callable, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames) {
  return capture::call(capture_, callable, args, nargs, kwnames);
}

Ref CaptureSemantics::call_ex(PyObject* callable, PyObject* args, PyObject* kwargs) {
  Ref tuple = for_c_code(capture_, args);
  Ref dict = tuple && kwargs ? for_c_code(capture_, kwargs) : Ref();
  if (!tuple || (kwargs && !dict)) return Ref();
  return capture::call_ex(capture_, callable, tuple.get(), dict.get());
}

Ref CaptureSemantics::make_function(cpython::Frame& frame, PyObject* code, PyObject* defaults, PyObject* kwdefaults,
                                    PyObject* annotations, PyObject* closure) {
  // Parts that were put together before the region: what is in them is not known one by one.
  for (PyObject* part : {defaults, kwdefaults, annotations, closure})
    if (part && capture_.is_outside(part)) return break_here(capture_, "filling", "function");
  Ref made = Semantics::make_function(frame, code, defaults, kwdefaults, annotations, closure);
  if (made) {
    capture_.fresh_functions.insert(made.get());
    capture_.keep_alive.push_back(made);
  }
  return made;
}

Ref CaptureSemantics::iterate(PyObject* iterable) { return capture::iterate(capture_, iterable); }
Ref CaptureSemantics::next(PyObject* iterator) { return capture::next(capture_, iterator); }

int CaptureSemantics::unpack(PyObject* iterable, int before, int after, bool star, Ref* out) {
  if (is_outside_iterator(capture_, iterable)) return break_status(capture_, "loop_boundary");
  Ref seen = for_c_code(capture_, iterable);
  if (!seen || !order_is_read(capture_, seen.get())) return -1;
  const int status = Semantics::unpack(seen.get(), before, after, star, out);
  return capture_.pending ? -1 : status;
}

// A display or comprehension that was begun before the region: its container lies on the stack of the real frame. A
// guard on what is in it would fail in each round. Appending and setting a key ask for none; else the one instruction
// runs for real.
bool CaptureSemantics::begun_outside(PyObject* container) {
  if (!capture_.is_outside(container)) return false;
  break_here(capture_, "filling", Py_TYPE(container)->tp_name);
  return true;
}

int CaptureSemantics::list_append(PyObject* list, PyObject* value) {
  return capture::list_append(capture_, list, value);
}

int CaptureSemantics::set_add(PyObject* set, PyObject* value) {
  Ref plain = begun_outside(set) ? Ref() : capture_.concrete(value);
  if (!plain) return -1;
  return look_at(capture_, plain.get(), Look::Compares) ? Semantics::set_add(set, plain.get()) : -1;
}

int CaptureSemantics::map_add(PyObject* dict, PyObject* key, PyObject* value) {
  Ref plain = capture_.concrete(key);
  return plain ? dict_set(capture_, dict, plain.get(), value) : -1;
}

Ref CaptureSemantics::list_to_tuple(PyObject* list) {
  Ref seen = for_c_code(capture_, list);
  return seen ? Semantics::list_to_tuple(seen.get()) : seen;
}

int CaptureSemantics::list_extend(PyObject* list, PyObject* iterable) {
  if (begun_outside(list)) return -1;
  if (is_outside_iterator(capture_, iterable)) return break_status(capture_, "loop_boundary");
  Ref seen = for_c_code(capture_, iterable);
  if (!seen || !order_is_read(capture_, seen.get())) return -1;
  const int status = Semantics::list_extend(list, seen.get());
  return capture_.pending ? -1 : status;
}

int CaptureSemantics::set_update(PyObject* set, PyObject* iterable) {
  if (begun_outside(set)) return -1;
  if (is_outside_iterator(capture_, iterable)) return break_status(capture_, "loop_boundary");
  Ref seen = for_plain_c_code(capture_, iterable);
  if (seen && PyIter_Check(seen.get())) seen = element_proxy(capture_, seen.get(), true, Look::Compares);
  if (!seen || !order_goes_on(capture_, seen.get()) || !look_at(capture_, seen.get(), Look::Compares)) return -1;
  const int status = Semantics::set_update(set, seen.get());
  return capture_.pending ? -1 : status;
}

int CaptureSemantics::dict_update(PyObject* dict, PyObject* mapping) {
  if (begun_outside(dict)) return -1;
  Ref seen = for_c_code(capture_, mapping);
  const bool looked = seen && look_at(capture_, seen.get(), Look::Keys);
  const int status = looked ? Semantics::dict_update(dict, seen.get()) : -1;
  return capture_.pending ? -1 : status;
}

int CaptureSemantics::dict_merge(PyObject* dict, PyObject* mapping, PyObject* callable) {
  if (begun_outside(dict)) return -1;
  Ref seen = for_c_code(capture_, mapping);
  const int status = seen ? Semantics::dict_merge(dict, seen.get(), callable) : -1;
  return capture_.pending ? -1 : status;
}

Ref CaptureSemantics::format(PyObject* value, int conversion, PyObject* spec) {
  if (torch_layer::is_stand_in(value)) return break_here(capture_, "tensor_text", "an f-string");
  Ref seen = for_plain_c_code(capture_, value);
  seen = seen ? without_symbols(capture_, seen.get()) : Ref();
  if (!seen || !look_at(capture_, seen.get(), Look::Reads)) return Ref();
  std::optional<cpython::HookScope> nobody;  // numpy makes the text in Python of its own
  if (is_array_kind(seen.get())) nobody.emplace(nullptr);
  Ref text = Semantics::format(seen.get(), conversion, spec);
  nobody.reset();
  PyObject* const from[] = {seen.get()};
  return capture_.pending ? Ref() : without_address(capture_, std::move(text), from, 1);
}

Ref CaptureSemantics::load_special(PyObject* object, PyObject* name) {
  Ref found = special_method(capture_, object, PyUnicode_AsUTF8(name));
  if (found || PyErr_Occurred()) return found;
  return Semantics::load_special(object, name);
}

// A number that varies matches what its value matches: `int(count)` takes it as it is, other patterns need the value.
Ref CaptureSemantics::match_number(PyObject* subject, PyObject* type, int nargs, PyObject* names) {
  const bool real = torch_layer::is_graph_float(subject);
  const auto* own = reinterpret_cast<PyObject*>(real ? &PyFloat_Type : &PyLong_Type);
  if (type == own && nargs <= 1 && PyTuple_GET_SIZE(names) == 0)
    return Ref::steal(nargs ? PyTuple_Pack(1, subject) : PyTuple_New(0));
  const Ref any = Ref::steal(real ? PyFloat_FromDouble(2) : PyLong_FromLong(2));
  const int matches = any ? PyObject_IsInstance(any.get(), type) : -1;
  if (matches <= 0) return matches < 0 ? Ref() : Ref::borrow(Py_None);
  const Ref number = capture_.concrete(subject);
  return number ? Semantics::match_class(number.get(), type, nargs, names) : Ref();
}

Ref CaptureSemantics::match_class(PyObject* subject, PyObject* type, int nargs, PyObject* names) {
  if (PyType_Check(type) && torch_layer::is_sym_scalar(subject)) return match_number(subject, type, nargs, names);
  if (!capture_.is_outside(subject) || container_kind(subject) != Kind::None)
    return Semantics::match_class(subject, type, nargs, names);
  const int matches = PyObject_IsInstance(subject, type);
  if (matches <= 0) return matches < 0 ? Ref() : Ref::borrow(Py_None);
  const Py_ssize_t named = PyTuple_GET_SIZE(names);
  Ref result = Ref::steal(PyTuple_New(nargs + named));
  Ref key = Ref::steal(PyUnicode_InternFromString("__match_args__"));
  Ref positional = nargs ? capture::get_attr(capture_, type, key.get()) : Ref();
  if (!result || (nargs && !positional)) return Ref();
  for (Py_ssize_t i = 0; i < nargs + named; ++i) {
    PyObject* name = i < nargs ? PyTuple_GetItem(positional.get(), i) : PyTuple_GET_ITEM(names, i - nargs);
    Ref value = name ? capture::get_attr(capture_, subject, name) : Ref();
    if (!value) {
      if (capture_.pending || !name || !PyErr_ExceptionMatches(PyExc_AttributeError)) return Ref();
      PyErr_Clear();
      return Ref::borrow(Py_None);
    }
    PyTuple_SET_ITEM(result.get(), i, value.release());
  }
  return result;
}

Ref CaptureSemantics::match_keys(PyObject* subject, PyObject* keys) {
  Ref seen = for_c_code(capture_, subject);
  return seen ? Semantics::match_keys(seen.get(), keys) : seen;
}

int CaptureSemantics::match_is(PyObject* subject, bool mapping) { return Semantics::match_is(subject, mapping); }

}  // namespace graphlift::capture
