// Owns: see fetch.h. One row per origin kind.
#include "guards/fetch.h"

#include <structmember.h>

#include <array>
#include <cstring>
#include <map>

#include "base/error.h"
#include "base/text.h"
#include "cpython/instance.h"
#include "cpython/lru_cache.h"
#include "cpython/raw_dict.h"
#include "guards/constant.h"

namespace graphlift::guards {

namespace {

using cpython::Answer;

bool anything(PyObject*) { return true; }
bool nothing(PyObject*) { return false; }
bool is_dict(PyObject* object) { return PyDict_Check(object); }
bool is_list(PyObject* object) { return PyList_Check(object); }
bool is_tuple(PyObject* object) { return PyTuple_Check(object); }
bool is_type(PyObject* object) { return PyType_Check(object); }
bool is_cell(PyObject* object) { return PyCell_Check(object); }
bool is_function(PyObject* object) { return PyFunction_Check(object); }
bool is_module(PyObject* object) { return PyModule_Check(object); }
bool is_context_variable(PyObject* object) { return PyContextVar_CheckExact(object); }
bool is_weakref(PyObject* object) { return PyWeakref_Check(object); }

// An object that was given no attribute yet gets its empty dict, as the program's own look would make it.
PyObject* instance_dict(PyObject* parent, const Step&) {
  PyObject** place = cpython::instance_dict_address(parent);
  if (!place || *place) return place ? *place : nullptr;
  return cpython::instance_dict(parent);
}

PyObject* dict_item(PyObject* parent, const Step& step) {
  PyObject* value = nullptr;
  return cpython::raw_dict_lookup(parent, step.key, step.hash, &value) == Answer::Yes ? value : nullptr;
}

PyObject* list_item(PyObject* parent, const Step& step) {
  return step.index >= 0 && step.index < PyList_GET_SIZE(parent) ? PyList_GET_ITEM(parent, step.index) : nullptr;
}

PyObject* tuple_item(PyObject* parent, const Step& step) {
  return step.index >= 0 && step.index < PyTuple_GET_SIZE(parent) ? PyTuple_GET_ITEM(parent, step.index) : nullptr;
}

// The content of an object member (T_OBJECT, T_OBJECT_EX) that a descriptor describes, if the object has that member.
PyObject* member(PyObject* object, PyObject* descriptor) {
  if (!Py_IS_TYPE(descriptor, &PyMemberDescr_Type)) return nullptr;
  if (!PyObject_TypeCheck(object, PyDescr_TYPE(descriptor))) return nullptr;
  const PyMemberDef* definition = reinterpret_cast<PyMemberDescrObject*>(descriptor)->d_member;
  if (definition->type != T_OBJECT_EX && definition->type != T_OBJECT) return nullptr;
  return *reinterpret_cast<PyObject**>(reinterpret_cast<char*>(object) + definition->offset);
}

PyObject* slot(PyObject* parent, const Step& step) { return member(parent, step.key); }

PyObject* type_of(PyObject* parent, const Step&) { return reinterpret_cast<PyObject*>(Py_TYPE(parent)); }

PyObject* type_attribute(PyObject* parent, const Step& step) {
  return _PyType_Lookup(reinterpret_cast<PyTypeObject*>(parent), step.key);
}

PyObject* cell(PyObject* parent, const Step&) { return PyCell_GET(parent); }

PyObject* closure(PyObject* parent, const Step& step) {
  PyObject* cells = PyFunction_GET_CLOSURE(parent);
  return cells ? tuple_item(cells, step) : nullptr;
}

PyObject* defaults(PyObject* parent, const Step&) { return PyFunction_GET_DEFAULTS(parent); }
PyObject* keyword_defaults(PyObject* parent, const Step&) { return PyFunction_GET_KW_DEFAULTS(parent); }
PyObject* code(PyObject* parent, const Step&) { return PyFunction_GET_CODE(parent); }

PyObject* function_globals(PyObject* parent, const Step&) { return PyFunction_GET_GLOBALS(parent); }

PyObject* function_dict(PyObject* parent, const Step&) {
  return reinterpret_cast<PyFunctionObject*>(parent)->func_dict;
}

// Read-only object members of builtin types: staticmethod and classmethod have __func__ and __wrapped__.
PyObject* builtin_member(PyObject* object, const char* name) {
  for (PyTypeObject* type = Py_TYPE(object); type; type = type->tp_base) {
    for (const PyMemberDef* row = type->tp_members; row && row->name; ++row) {
      if (std::strcmp(row->name, name) != 0 || (row->type != T_OBJECT && row->type != T_OBJECT_EX)) continue;
      return *reinterpret_cast<PyObject**>(reinterpret_cast<char*>(object) + row->offset);
    }
  }
  return nullptr;
}

bool is_method(PyObject* object) {
  return PyMethod_Check(object) || PyCFunction_Check(object) || PyObject_TypeCheck(object, &PyStaticMethod_Type) ||
         PyObject_TypeCheck(object, &PyClassMethod_Type);
}

PyObject* method_self(PyObject* parent, const Step&) {
  if (PyMethod_Check(parent)) return PyMethod_GET_SELF(parent);
  return PyCFunction_Check(parent) ? PyCFunction_GET_SELF(parent) : nullptr;
}

// The descriptor on its type that a method in C was bound from.
PyObject* c_method_descriptor(PyObject* method) {
  PyMethodDef* definition = reinterpret_cast<PyCFunctionObject*>(method)->m_ml;
  PyObject* self = PyCFunction_GET_SELF(method);
  Ref name = Ref::steal(PyUnicode_InternFromString(definition->ml_name));
  PyObject* found = self && name ? _PyType_Lookup(Py_TYPE(self), name.get()) : nullptr;
  const bool same = found && Py_IS_TYPE(found, &PyMethodDescr_Type) &&
                    reinterpret_cast<PyMethodDescrObject*>(found)->d_method == definition;
  return same ? found : nullptr;
}

PyObject* method_function(PyObject* parent, const Step&) {
  if (PyMethod_Check(parent)) return PyMethod_GET_FUNCTION(parent);
  return PyCFunction_Check(parent) ? c_method_descriptor(parent) : builtin_member(parent, "__func__");
}

// functools.partial is a C type of a module that need not be loaded: known by its name.
bool is_partial(PyObject* object) {
  for (PyTypeObject* type = Py_TYPE(object); type; type = type->tp_base)
    if (std::strcmp(type->tp_name, "functools.partial") == 0) return true;
  return false;
}

PyObject* partial_part(PyObject* parent, const Step& step) {
  PyObject* descriptor = _PyType_Lookup(Py_TYPE(parent), step.key);
  return descriptor ? member(parent, descriptor) : nullptr;
}

PyObject* module_dict(PyObject* parent, const Step&) { return PyModule_GetDict(parent); }
PyObject* weak_target(PyObject* parent, const Step&) { return cpython::weakref_target(parent); }
PyObject* cache_dict(PyObject* parent, const Step&) { return cpython::lru_cache_dict(parent); }
PyObject* cache_entry(PyObject* parent, const Step&) { return cpython::lru_link_result(parent); }

// The context, or the variable as its default, keeps the value.
PyObject* context_value(PyObject* parent, const Step&) {
  PyObject* value = nullptr;
  if (PyContextVar_Get(parent, nullptr, &value) < 0) PyErr_Clear();
  Py_XDECREF(value);
  return value;
}

struct KindRow {
  OriginKind kind;
  RawFetch fetch;
  bool (*fits)(PyObject*);
};

constexpr KindRow kSteps[] = {
    {OriginKind::InstanceDict, instance_dict, anything},
    {OriginKind::DictItem, dict_item, is_dict},
    {OriginKind::ListItem, list_item, is_list},
    {OriginKind::TupleItem, tuple_item, is_tuple},
    {OriginKind::Slot, slot, anything},
    {OriginKind::TypeOf, type_of, anything},
    {OriginKind::TypeAttr, type_attribute, is_type},
    {OriginKind::Cell, cell, is_cell},
    {OriginKind::Closure, closure, is_function},
    {OriginKind::Defaults, defaults, is_function},
    {OriginKind::KwDefaults, keyword_defaults, is_function},
    {OriginKind::Code, code, is_function},
    {OriginKind::FunctionGlobals, function_globals, is_function},
    {OriginKind::FunctionDict, function_dict, is_function},
    {OriginKind::MethodSelf, method_self, is_method},
    {OriginKind::MethodFunction, method_function, is_method},
    {OriginKind::PartialPart, partial_part, is_partial},
    {OriginKind::ModuleDict, module_dict, is_module},
    {OriginKind::WeakTarget, weak_target, is_weakref},
    {OriginKind::CacheDict, cache_dict, anything},
    {OriginKind::CacheEntry, cache_entry, anything},
    {OriginKind::ContextValue, context_value, is_context_variable},
    {OriginKind::TensorDict, instance_dict, anything},
};

constexpr const char* kTexts[] = {
#define KIND(name, text) text,
    GRAPHLIFT_ORIGINS(KIND)
#undef KIND
};
constexpr size_t kKinds = std::size(kTexts);

using Rows = std::array<FetchRow, kKinds>;
Rows make_rows() {
  Rows rows{};
  for (size_t i = 0; i < kKinds; ++i)
    rows[i] = {nullptr, is_registered(static_cast<OriginKind>(i)) ? anything : nothing, kTexts[i]};
  for (const KindRow& row : kSteps) {
    rows[static_cast<size_t>(row.kind)].fetch = row.fetch;
    rows[static_cast<size_t>(row.kind)].fits = row.fits;
  }
  return rows;
}

struct Registry {
  std::map<OriginKind, FetchStep> kinds;
  std::map<std::string, FetchStep, std::less<>> custom;
};
// Filled while layers start, before the first tree is made; never changed under a running check.
Registry& registry() {
  static Registry instance;
  return instance;
}

std::string local_name(PyCodeObject* code, int index) {
  PyObject* names = code ? code->co_localsplusnames : nullptr;
  return names && index < PyTuple_GET_SIZE(names) ? describe(PyTuple_GET_ITEM(names, index)) : std::to_string(index);
}

bool is_indexed(OriginKind kind) {
  return kind == OriginKind::Stack || kind == OriginKind::Caller || kind == OriginKind::ListItem ||
         kind == OriginKind::TupleItem || kind == OriginKind::Closure;
}

// What stands in the brackets of a kind's text: a subscript as Python writes it, an attribute by its bare name.
std::string operand_text(const Origin& origin, PyCodeObject* code) {
  if (origin.kind == OriginKind::Local) return local_name(code, origin.index);
  if (is_indexed(origin.kind)) return std::to_string(origin.index);
  PyObject* key = origin.key.get();
  const bool bare = origin.kind == OriginKind::PartialPart || origin.kind == OriginKind::Custom;
  if (origin.kind == OriginKind::Slot && Py_IS_TYPE(key, &PyMemberDescr_Type)) key = PyDescr_NAME(key);
  if ((bare || key != origin.key.get()) && PyUnicode_Check(key)) {
    const char* words = PyUnicode_AsUTF8(key);
    if (!words) PyErr_Clear();
    return words ? words : "?";
  }
  return key ? describe(key) : "";
}

}  // namespace

const FetchRow& fetch_row(OriginKind kind) {
  static const Rows rows = make_rows();
  return rows[static_cast<size_t>(kind)];
}

bool is_root(OriginKind kind) { return kind <= OriginKind::Constant; }
bool is_registered(OriginKind kind) { return kind == OriginKind::TensorGrad || kind == OriginKind::Custom; }

PyObject* fetch_root(const Roots& roots, OriginKind kind, int index) {
  switch (kind) {
    case OriginKind::Local:
      return roots.locals ? roots.locals[index] : nullptr;
    case OriginKind::Stack:
      return roots.stack ? roots.stack[index] : nullptr;
    case OriginKind::Globals:
      return roots.globals;
    case OriginKind::Builtins:
      return roots.builtins;
    case OriginKind::Function:
      return roots.function;
    case OriginKind::Caller:
      return roots.callers ? roots.callers[index] : nullptr;
    default:
      return nullptr;
  }
}

FetchStep registered_fetch(OriginKind kind, PyObject* key) {
  if (kind != OriginKind::Custom) {
    auto row = registry().kinds.find(kind);
    return row == registry().kinds.end() ? nullptr : row->second;
  }
  const char* name = key && PyUnicode_Check(key) ? PyUnicode_AsUTF8(key) : nullptr;
  if (!name) return nullptr;
  auto row = registry().custom.find(name);
  return row == registry().custom.end() ? nullptr : row->second;
}

void register_fetch(OriginKind kind, FetchStep fetch) { registry().kinds[kind] = fetch; }
void register_custom_fetch(std::string name, FetchStep fetch) { registry().custom[std::move(name)] = fetch; }

bool prepare_step(const Origin& origin, Step* step) {
  *step = {origin.kind, origin.index, origin.key.get(), 0};
  if (origin.kind != OriginKind::DictItem) return true;
  step->hash = PyObject_Hash(step->key);
  return step->hash != -1;
}

bool surely_missing(PyObject* parent, const Step& step) {
  const FetchRow& row = fetch_row(step.kind);
  if (!row.fits(parent)) return false;
  if (step.kind != OriginKind::DictItem) return !row.fetch || !row.fetch(parent, step);
  PyObject* value = nullptr;
  return cpython::raw_dict_lookup(parent, step.key, step.hash, &value) == Answer::No;
}

std::string step_text(const Origin& origin, const std::string& parent, PyCodeObject* code) {
  return fill(fetch_row(origin.kind).text, parent, operand_text(origin, code));
}

}  // namespace graphlift::guards
