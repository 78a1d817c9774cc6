// Owns: rules for fresh instances of Python classes, exceptions, and instances of classes derived from numbers and
// strings; and the attributes (slots and instance dicts) of everything fresh. Must not: call __getattribute__,
// __reduce__ or any other method of a class.
#include <Python.h>
#include <structmember.h>

#include <string_view>

#include "capture/handled.h"
#include "capture/recipe_parts.h"
#include "capture/snapshot_builder.h"
#include "cpython/instance.h"

namespace graphlift::capture {
namespace {

using Builder = SnapshotBuilder;

// --- attributes
// ------------------------------------------------------------------------------------------------------------

// Types whose member descriptors hold state that allocation does not give.
bool has_state_in_members(PyTypeObject* type) {
  if (is_python_class(type)) return true;
  if (type->tp_flags & Py_TPFLAGS_BASE_EXC_SUBCLASS) return true;
  return type->tp_name == std::string_view("collections.defaultdict");
}

bool add_pair(Builder& builder, int key, PyObject* value, std::vector<int>* state) {
  const int node = value ? builder.node_of(value) : -1;
  if (key < 0 || node < 0) return false;
  state->insert(state->end(), {key, node});
  return true;
}

// What the member holds when it is worth setting: not when it is unset, nor what a new object has anyway.
Ref member_value(PyObject* object, PyMemberDef* member) {
  if (member->flags & READONLY) return Ref();
  Ref value = Ref::steal(PyMember_GetOne(reinterpret_cast<const char*>(object), member));
  if (!value) PyErr_Clear();
  const bool is_default = (value.get() == Py_None && member->type == T_OBJECT) || value.get() == Py_False;
  return is_default && member->type != T_OBJECT_EX ? Ref() : value;
}

bool add_members(Builder& builder, PyObject* object, std::vector<int>* state) {
  PyObject* mro = Py_TYPE(object)->tp_mro;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(mro); ++i) {
    auto* type = reinterpret_cast<PyTypeObject*>(PyTuple_GET_ITEM(mro, i));
    if (!has_state_in_members(type)) continue;
    PyObject *name, *descriptor;
    Py_ssize_t position = 0;
    while (PyDict_Next(cpython::type_dict(type), &position, &name, &descriptor)) {
      if (!Py_IS_TYPE(descriptor, &PyMemberDescr_Type) || PyDescr_TYPE(descriptor) != type) continue;
      Ref value = member_value(object, reinterpret_cast<PyMemberDescrObject*>(descriptor)->d_member);
      if (!value) continue;
      PyObject* kept = builder.keep(std::move(value));
      if (!add_pair(builder, builder.constant(descriptor), kept, state)) return false;
    }
  }
  return true;
}

// Someone else holds the dict itself (it was read as __dict__), or its keys are odd: the object gets it as it is.
bool is_dict_of_its_own(PyObject* dict) {
  if (Py_REFCNT(dict) > 1) return true;
  PyObject *key, *value;
  Py_ssize_t position = 0;
  while (PyDict_Next(dict, &position, &key, &value))
    if (!PyUnicode_CheckExact(key)) return true;
  return false;
}

// The C setter of the instance dict.
PyObject* dict_descriptor(PyTypeObject* type) {
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(type->tp_mro); ++i) {
    auto* base = reinterpret_cast<PyTypeObject*>(PyTuple_GET_ITEM(type->tp_mro, i));
    PyObject* found = PyDict_GetItemString(cpython::type_dict(base), "__dict__");
    if (found && Py_IS_TYPE(found, &PyGetSetDescr_Type)) return found;
  }
  return nullptr;
}

bool add_instance_dict(Builder& builder, PyObject* object, std::vector<int>* state) {
  PyObject* dict = PyFunction_Check(object) ? reinterpret_cast<PyFunctionObject*>(object)->func_dict
                                            : cpython::instance_dict(object);
  if (!dict) return true;
  if (is_dict_of_its_own(dict)) {
    PyObject* descriptor = dict_descriptor(Py_TYPE(object));
    return descriptor && add_pair(builder, builder.constant(descriptor), dict, state);
  }
  PyObject *key, *value;
  Py_ssize_t position = 0;
  while (PyDict_Next(dict, &position, &key, &value))
    if (!add_pair(builder, builder.constant(key), value, state)) return false;
  return true;
}

// --- instances of Python classes
// ---------------------------------------------------------------------------------------------

RecipeNode instance_of(PyObject* object) {
  return {NodeKind::Instance, Ref::borrow(reinterpret_cast<PyObject*>(Py_TYPE(object)))};
}

bool matches_instance(PyObject*, PyTypeObject* base) {
  return base == &PyBaseObject_Type || base->tp_name == std::string_view("types.SimpleNamespace");
}

int early_instance(Builder& builder, PyObject* object) { return builder.add(instance_of(object)); }

// Exact value of an instance of a class derived from int, float, complex, str or bytes. Slots of the C types
// themselves.
Ref plain_value(PyObject* object, PyTypeObject* base) {
  if (base == &PyLong_Type) return Ref::steal(PyLong_Type.tp_as_number->nb_int(object));
  if (base == &PyFloat_Type) return Ref::steal(PyFloat_FromDouble(PyFloat_AS_DOUBLE(object)));
  if (base == &PyComplex_Type) return Ref::steal(PyComplex_FromCComplex(PyComplex_AsCComplex(object)));
  if (base == &PyUnicode_Type) return Ref::steal(PyUnicode_FromObject(object));
  return Ref::steal(PyBytes_FromStringAndSize(PyBytes_AS_STRING(object), PyBytes_GET_SIZE(object)));
}

bool matches_derived_value(PyObject*, PyTypeObject* base) {
  return base == &PyLong_Type || base == &PyFloat_Type || base == &PyComplex_Type || base == &PyUnicode_Type ||
         base == &PyBytes_Type;
}

int early_derived_value(Builder& builder, PyObject* object) {
  PyObject* value = builder.keep(plain_value(object, c_base(Py_TYPE(object))));
  if (!value) return -1;
  RecipeNode node = instance_of(object);
  node.children.push_back(builder.constant(value));
  return builder.add(std::move(node));
}

// --- exceptions
// ----------------------------------------------------------------------------------------------------------------

PyObject* exception_descriptor(const char* name) {
  return PyDict_GetItemString(cpython::type_dict(reinterpret_cast<PyTypeObject*>(PyExc_BaseException)), name);
}

bool matches_exception(PyObject* object, PyTypeObject* base) {
  return PyExceptionInstance_Check(object) && PyExceptionClass_Check(reinterpret_cast<PyObject*>(base));
}

bool is_group(PyObject* exception) {
  return PyObject_TypeCheck(exception, reinterpret_cast<PyTypeObject*>(PyExc_BaseExceptionGroup));
}

// A group is allocated with the tuple of its members: its `args` may hold a list, which is filled too late for that.
int early_exception(Builder& builder, PyObject* exception) {
  if (exception == builder.capture.handled_before) return builder.fail(exception);  // another one in each call
  RecipeNode node = instance_of(exception);
  if (is_group(exception)) {
    auto* group = reinterpret_cast<PyBaseExceptionGroupObject*>(exception);
    PyObject* parts[] = {group->msg, group->excs};
    return builder.nodes_of(parts, &node.children) ? builder.add(std::move(node)) : -1;
  }
  PyObject* args = reinterpret_cast<PyBaseExceptionObject*>(exception)->args;
  if (!builder.nodes_of({&PyTuple_GET_ITEM(args, 0), static_cast<size_t>(PyTuple_GET_SIZE(args))}, &node.children))
    return -1;
  return builder.add(std::move(node));
}

// The traceback is dropped: it belongs to frames that the region has left.
bool late_exception(Builder& builder, PyObject* exception, int node) {
  if (!guard_context(builder.capture, exception)) return builder.fail(exception) >= 0;
  std::vector<int> links;
  auto* parts = reinterpret_cast<PyBaseExceptionObject*>(exception);
  if (is_group(exception) && !add_pair(builder, builder.constant(exception_descriptor("args")), parts->args, &links))
    return false;
  if (parts->context &&
      !add_pair(builder, builder.constant(exception_descriptor("__context__")), parts->context, &links))
    return false;
  if (parts->cause && !add_pair(builder, builder.constant(exception_descriptor("__cause__")), parts->cause, &links))
    return false;
  // Setting the cause suppresses the context; what the exception has comes after it.
  PyObject* suppress = parts->suppress_context ? Py_True : Py_False;
  if (parts->cause &&
      !add_pair(builder, builder.constant(exception_descriptor("__suppress_context__")), suppress, &links))
    return false;
  builder.at(node).state = std::move(links);
  return add_attributes(builder, exception, node);
}

constexpr FreshRule kObjectRules[] = {
    {"exception", matches_exception, early_exception, late_exception},
    {"number or string of a derived class", matches_derived_value, early_derived_value, add_attributes},
    {"instance", matches_instance, early_instance, add_attributes},
};

}  // namespace

bool add_attributes(SnapshotBuilder& builder, PyObject* object, int node) {
  std::vector<int> state;
  if (!add_members(builder, object, &state) || !add_instance_dict(builder, object, &state)) return false;
  std::vector<int>& all = builder.at(node).state;
  all.insert(all.end(), state.begin(), state.end());
  return true;
}

std::span<const FreshRule> object_rules() { return kObjectRules; }

}  // namespace graphlift::capture
