// Owns: see callables.h; resolving rows by import path, and the allowed C types.
#include "capture/callables.h"

#include <cstring>
#include <unordered_map>

#include "base/once.h"
#include "capture/c_calls.h"
#include "cpython/hook.h"

namespace graphlift::capture {

namespace {

// "torch._C._nn.gelu": the longest importable prefix that is loaded already, then attributes. Imports nothing new.
Ref resolve(const char* path) {
  Ref modules = Ref::borrow(PyImport_GetModuleDict());
  std::string text = path;
  for (size_t cut = text.rfind('.'); cut != std::string::npos;
       cut = cut ? text.rfind('.', cut - 1) : std::string::npos) {
    PyObject* module = PyDict_GetItemString(modules.get(), text.substr(0, cut).c_str());
    if (!module) continue;
    Ref object = Ref::borrow(module);
    std::string rest = text.substr(cut + 1);
    while (object && !rest.empty()) {
      const size_t dot = rest.find('.');
      const std::string part = rest.substr(0, dot);
      rest = dot == std::string::npos ? "" : rest.substr(dot + 1);
      Ref raw = PyType_Check(object.get())
                    ? Ref::borrow(_PyType_Lookup(reinterpret_cast<PyTypeObject*>(object.get()),
                                                 Ref::steal(PyUnicode_FromString(part.c_str())).get()))
                    : Ref();
      const bool plain =
          raw && (Py_IS_TYPE(raw.get(), &PyMethodDescr_Type) || Py_IS_TYPE(raw.get(), &PyWrapperDescr_Type) ||
                  Py_IS_TYPE(raw.get(), &PyClassMethodDescr_Type) || PyFunction_Check(raw.get()));
      object = plain ? raw : Ref::steal(PyObject_GetAttrString(object.get(), part.c_str()));
    }
    PyErr_Clear();
    if (object) return object;
  }
  return Ref();
}

struct Table {
  std::unordered_map<PyObject*, const CallableRow*> by_object;
  std::unordered_map<PyObject*, const CallableRow*> constructors;
  std::vector<std::string> unresolved;
  size_t modules = 0;  // loaded modules when it was made: rows of later modules resolve then
};

Table make_table() {
  cpython::HookScope nobody(nullptr);  // module attributes may run Python code, which is not the program's
  Table table;
  for (const Family* family :
       {&builtin_callables(), &module_callables(), &torch_callables(), &process_state_callables(),
        &functorch_callables(), &context_callables(), &torch_function_callables(), &random_callables()})
    for (const CallableRow& row : *family) {
      Ref object = resolve(row.path);
      if (object)
        table.by_object[object.release()] = &row;  // kept for the process: its address is the key
      else
        table.unresolved.push_back(row.path);
    }
  for (const CallableRow& row : constructor_rows()) {
    Ref object = resolve(row.path);
    if (object)
      table.constructors[object.release()] = &row;
    else
      table.unresolved.push_back(row.path);
  }
  return table;
}

const Table& table() {
  static Table current = make_table();
  const size_t modules = static_cast<size_t>(PyDict_GET_SIZE(PyImport_GetModuleDict()));
  if (!current.unresolved.empty() && modules != current.modules) {
    current.modules = modules;
    current = make_table();
    current.modules = modules;
  }
  return current;
}

bool in_list(PyTypeObject* type, const std::vector<PyTypeObject*>& list) {
  for (PyTypeObject* known : list)
    if (type == known) return true;
  return false;
}

// Types given by import path, resolved once.
std::vector<PyTypeObject*> types(std::initializer_list<const char*> paths) {
  cpython::HookScope nobody(nullptr);
  std::vector<PyTypeObject*> found;
  for (const char* path : paths) {
    Ref object = resolve(path);
    if (object && PyType_Check(object.get())) found.push_back(reinterpret_cast<PyTypeObject*>(object.release()));
  }
  return found;
}

}  // namespace

const CallableRow* find_callable(PyObject* callable) {
  const auto& rows = table().by_object;
  auto found = rows.find(callable);
  return found == rows.end() ? nullptr : found->second;
}

const CallableRow* find_constructor(PyTypeObject* type) {
  const auto& rows = table().constructors;
  auto found = rows.find(reinterpret_cast<PyObject*>(type));
  return found == rows.end() ? nullptr : found->second;
}

std::vector<const CallableRow*> all_callables() {
  std::vector<const CallableRow*> rows;
  for (const Family* family : {&builtin_callables(), &module_callables(), &torch_callables(),
                               &process_state_callables(), &functorch_callables(), &context_callables(),
                               &torch_function_callables(), &random_callables(), &constructor_rows()})
    for (const CallableRow& row : *family) rows.push_back(&row);
  return rows;
}

void prepare_tables() {
  find_callable(Py_None);
  for (auto ask :
       {is_pure_type, is_container_type, is_known_fresh_type, torch_layer::is_torch_owned, torch_layer::is_known_base})
    ask(&PyBaseObject_Type);
  for (auto ask : {torch_layer::is_singleton, torch_layer::is_device, torch_layer::is_torch_size,
                   torch_layer::is_tensor_function, torch_layer::is_operator_object})
    ask(Py_None);
  torch_layer::is_parameter(Py_None);
  is_identity_constant(Py_None);
  PyErr_Clear();
}

std::vector<std::string> unresolved_callables() { return table().unresolved; }

bool is_pure_type(PyTypeObject* type) {
  static const std::vector<PyTypeObject*> fixed = {
      &PyLong_Type,       &PyBool_Type,         &PyFloat_Type,      &PyComplex_Type,      &PyUnicode_Type,
      &PyBytes_Type,      &PyTuple_Type,        &PyFrozenSet_Type,  &PyRange_Type,        &PySlice_Type,
      &PyBaseObject_Type, &PyType_Type,         Py_TYPE(Py_None),   Py_TYPE(Py_Ellipsis), Py_TYPE(Py_NotImplemented),
      &PyProperty_Type,   &PyStaticMethod_Type, &PyClassMethod_Type};
  static constinit Once<std::vector<PyTypeObject*>> loaded_once;
  const auto& loaded = loaded_once.get([] {
    return types({"re.Pattern",
                  "re.Match",
                  "types.GenericAlias",
                  "types.UnionType",
                  "types.MappingProxyType",
                  "types.SimpleNamespace",
                  "datetime.timedelta",
                  "datetime.date",
                  "datetime.datetime",
                  "decimal.Decimal",
                  "torch.Size",
                  "torch.device",
                  "torch.dtype",
                  "torch.finfo",
                  "torch.iinfo",
                  "torch.SymInt",
                  "torch.SymFloat",
                  "torch.SymBool",
                  "torch.layout",
                  "torch.memory_format"});
  });
  return in_list(type, fixed) || in_list(type, loaded);
}

bool is_container_type(PyTypeObject* type) {
  static const std::vector<PyTypeObject*> found = {&PyList_Type,      &PyDict_Type,     &PySet_Type,
                                                   &PyODict_Type,     &PyDictKeys_Type, &PyDictValues_Type,
                                                   &PyDictItems_Type, &PyByteArray_Type};
  static constinit Once<std::vector<PyTypeObject*>> loaded_once;
  const auto& loaded = loaded_once.get([] { return types({"collections.deque", "collections.defaultdict"}); });
  return in_list(type, found) || in_list(type, loaded);
}

bool is_known_fresh_type(PyTypeObject* type) {
  static const std::vector<PyTypeObject*> found = {
      &PyListIter_Type,     &PyTupleIter_Type, &PyRangeIter_Type, &PyDictIterKey_Type, &PyDictIterValue_Type,
      &PyDictIterItem_Type, &PySetIter_Type,   &PyEnum_Type,      &PyReversed_Type,    &PyZip_Type,
      &PyMap_Type,          &PyFilter_Type,    &PyGen_Type,       &PyCell_Type,        &PySuper_Type,
      &PyFunction_Type,     &PyMethod_Type,    &PySeqIter_Type,   &PyCallIter_Type};
  static constinit Once<std::vector<PyTypeObject*>> loaded_once;
  const auto& loaded = loaded_once.get([] {
    return types({"itertools.chain",
                  "itertools.count",
                  "itertools.cycle",
                  "itertools.repeat",
                  "itertools.islice",
                  "itertools.product",
                  "itertools.permutations",
                  "itertools.combinations",
                  "itertools.accumulate",
                  "itertools.starmap",
                  "itertools.takewhile",
                  "itertools.dropwhile",
                  "itertools.groupby",
                  "itertools.zip_longest",
                  "itertools.pairwise",
                  "itertools.compress",
                  "itertools.filterfalse",
                  "itertools.combinations_with_replacement",
                  "functools.partial",
                  "collections.deque",
                  "weakref.ref",
                  "torch._C.DisableTorchFunctionSubclass"});
  });
  if (PyType_IsSubtype(type, reinterpret_cast<PyTypeObject*>(PyExc_BaseException))) return true;
  return in_list(type, found) || in_list(type, loaded);
}

}  // namespace graphlift::capture
