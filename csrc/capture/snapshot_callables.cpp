// Owns: rules for fresh functions, bound methods of Python and C types, super objects, weak references and views of
// dicts. Must not: call any of them.
#include <Python.h>

#include <string_view>

#include "capture/recipe_parts.h"
#include "capture/snapshot_builder.h"
#include "cpython/instance.h"
#include "cpython/raw_dict.h"

namespace graphlift::capture {
namespace {

using Builder = SnapshotBuilder;

PyObject* own_attribute(PyTypeObject* type, const char* name) {
  return PyDict_GetItemString(cpython::type_dict(type), name);
}

// --- functions
// -----------------------------------------------------------------------------------------------------------------

bool matches_function(PyObject* object, PyTypeObject*) { return PyFunction_Check(object); }

int globals_node(Builder& builder, PyObject* globals) {
  Capture& capture = builder.capture;
  if (capture.is_outside(globals)) return builder.node_of(globals);
  if (!capture.frames.empty() && !capture.caller_root && capture.frames.front().globals() == globals)
    return builder.fetched(capture.origins().root(guards::OriginKind::Globals));
  return builder.constant(globals);  // of the module of a function that was entered through a guard
}

// A function that was not made while capturing was found through a guarded lookup, and is what that lookup always
// gives.
int early_function(Builder& builder, PyObject* object) {
  if (!builder.capture.fresh_functions.count(object)) return builder.add({NodeKind::Constant, Ref::borrow(object)});
  auto* function = reinterpret_cast<PyFunctionObject*>(object);
  RecipeNode node{NodeKind::Function, Ref::borrow(function->func_code)};
  node.children = {globals_node(builder, function->func_globals), builder.node_of(function->func_qualname), -1};
  if (function->func_closure && (node.children[2] = builder.node_of(function->func_closure)) < 0) return -1;
  return node.children[0] < 0 || node.children[1] < 0 ? -1 : builder.add(std::move(node));
}

// Attributes that differ from those of a function just made, and the setters that restore them.
bool late_function(Builder& builder, PyObject* object, int node) {
  if (builder.at(node).kind == NodeKind::Constant) return true;
  auto* function = reinterpret_cast<PyFunctionObject*>(object);
  Ref plain =
      Ref::steal(PyFunction_NewWithQualName(function->func_code, function->func_globals, function->func_qualname));
  std::vector<int> state;
  for (const char* name :
       {"__defaults__", "__kwdefaults__", "__doc__", "__module__", "__name__", "__annotations__", "__type_params__"}) {
    PyObject* descriptor = own_attribute(&PyFunction_Type, name);
    if (!plain || !descriptor) continue;
    if (name == std::string_view("__annotations__") && !function->func_annotations) continue;
    const auto get = Py_TYPE(descriptor)->tp_descr_get;
    PyObject* value = builder.keep(Ref::steal(get(descriptor, object, nullptr)));
    Ref usual = Ref::steal(get(descriptor, plain.get(), nullptr));
    if (!value || !usual) return false;
    if (value == usual.get()) continue;
    state.push_back(builder.constant(descriptor));
    state.push_back(builder.node_of(value));
    if (state.back() < 0) return false;
  }
  builder.at(node).state = std::move(state);
  return plain && add_attributes(builder, object, node);
}

// --- bound methods
// -------------------------------------------------------------------------------------------------------------

bool matches_method(PyObject* object, PyTypeObject*) { return PyMethod_Check(object); }

int early_method(Builder& builder, PyObject* method) {
  PyObject* parts[] = {PyMethod_GET_FUNCTION(method), PyMethod_GET_SELF(method)};
  RecipeNode node{NodeKind::Method};
  return builder.nodes_of(parts, &node.children) ? builder.add(std::move(node)) : -1;
}

int add_bound(Builder& builder, PyObject* descriptor, PyObject* self) {
  const int of = builder.node_of(self);
  if (of < 0) return -1;
  RecipeNode node{NodeKind::Bound};
  node.children = {builder.constant(descriptor), of};
  return builder.add(std::move(node));
}

// The descriptor of a C type in the mro that `wanted` accepts.
template <class Wanted>
PyObject* find_descriptor(PyTypeObject* type, const char* name, Wanted&& wanted) {
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(type->tp_mro); ++i) {
    PyObject* found = own_attribute(reinterpret_cast<PyTypeObject*>(PyTuple_GET_ITEM(type->tp_mro, i)), name);
    if (found && wanted(found)) return found;
  }
  return nullptr;
}

bool matches_c_method(PyObject* object, PyTypeObject*) {
  return PyCFunction_Check(object) && PyCFunction_GET_SELF(object);
}

int early_c_method(Builder& builder, PyObject* method) {
  PyMethodDef* definition = reinterpret_cast<PyCFunctionObject*>(method)->m_ml;
  PyObject* self = PyCFunction_GET_SELF(method);
  PyObject* descriptor = find_descriptor(Py_TYPE(self), definition->ml_name, [&](PyObject* found) {
    return Py_IS_TYPE(found, &PyMethodDescr_Type) &&
           reinterpret_cast<PyMethodDescrObject*>(found)->d_method == definition;
  });
  return descriptor ? add_bound(builder, descriptor, self) : -1;
}

bool matches_slot_method(PyObject* object, PyTypeObject*) {
  return Py_TYPE(object)->tp_name == std::string_view("method-wrapper");
}

int early_slot_method(Builder& builder, PyObject* method) {
  PyObject* self = builder.keep(Ref::steal(PyObject_GetAttrString(method, "__self__")));
  Ref name = Ref::steal(PyObject_GetAttrString(method, "__name__"));
  const char* text = name ? PyUnicode_AsUTF8(name.get()) : nullptr;
  if (!self || !text) return -1;
  PyObject* descriptor =
      find_descriptor(Py_TYPE(self), text, [](PyObject* found) { return Py_IS_TYPE(found, &PyWrapperDescr_Type); });
  return descriptor ? add_bound(builder, descriptor, self) : -1;
}

// --- made by a call of a C type or method
// ----------------------------------------------------------------------------------------

int add_call(Builder& builder, PyObject* callable, std::span<PyObject* const> args) {
  RecipeNode node{NodeKind::Call};
  node.children.push_back(builder.constant(callable));
  return builder.nodes_of(args, &node.children) ? builder.add(std::move(node)) : -1;
}

bool matches_super(PyObject* object, PyTypeObject*) { return Py_IS_TYPE(object, &PySuper_Type); }

int early_super(Builder& builder, PyObject* object) {
  PyObject* parts[2];
  const char* names[] = {"__thisclass__", "__self__"};
  for (int i = 0; i < 2; ++i) {
    PyObject* descriptor = own_attribute(&PySuper_Type, names[i]);
    parts[i] = builder.keep(Ref::steal(Py_TYPE(descriptor)->tp_descr_get(descriptor, object, nullptr)));
    if (!parts[i] || parts[i] == Py_None) return -1;
  }
  return add_call(builder, reinterpret_cast<PyObject*>(&PySuper_Type), parts);
}

bool matches_weakref(PyObject* object, PyTypeObject*) { return PyWeakref_CheckRefExact(object); }

int early_weakref(Builder& builder, PyObject* object) {
  PyObject* target = cpython::weakref_target(object);
  if (!target || reinterpret_cast<PyWeakReference*>(object)->wr_callback) return -1;
  RecipeNode node{NodeKind::Call};
  node.children = {builder.constant(reinterpret_cast<PyObject*>(Py_TYPE(object))),
                   builder.weak_node_of(target, object)};
  return node.children[1] < 0 ? -1 : builder.add(std::move(node));
}

// What a view or proxy looks at: the one object that it holds.
PyObject* viewed(PyObject* view) {
  PyObject* found = nullptr;
  auto note = [](PyObject* held, void* place) {
    if (!PyType_Check(held)) *static_cast<PyObject**>(place) = held;
    return 0;
  };
  Py_TYPE(view)->tp_traverse(view, note, &found);
  return found;
}

bool matches_dict_view(PyObject* object, PyTypeObject*) {
  return PyDictViewSet_Check(object) || PyDictValues_Check(object);
}

// A view's kind is its type's name: "dict_keys", "odict_items".
int early_dict_view(Builder& builder, PyObject* object) {
  PyObject* dict = viewed(object);
  const std::string name = Py_TYPE(object)->tp_name;
  PyTypeObject* type = name[0] == 'o' ? &PyODict_Type : &PyDict_Type;
  PyObject* method = own_attribute(type, name.c_str() + name.find('_') + 1);
  return method && dict ? add_call(builder, method, {&dict, 1}) : -1;
}

bool matches_proxy(PyObject* object, PyTypeObject*) { return Py_IS_TYPE(object, &PyDictProxy_Type); }

int early_proxy(Builder& builder, PyObject* object) {
  PyObject* mapping = viewed(object);
  return mapping ? add_call(builder, reinterpret_cast<PyObject*>(&PyDictProxy_Type), {&mapping, 1}) : -1;
}

constexpr FreshRule kCallableRules[] = {
    {"function", matches_function, early_function, late_function},
    {"method", matches_method, early_method, nullptr},
    {"method of a C type", matches_c_method, early_c_method, nullptr},
    {"slot method", matches_slot_method, early_slot_method, nullptr},
    {"super", matches_super, early_super, nullptr},
    {"weak reference", matches_weakref, early_weakref, nullptr},
    {"dict view", matches_dict_view, early_dict_view, nullptr},
    {"mapping proxy", matches_proxy, early_proxy, nullptr},
};

}  // namespace

std::span<const FreshRule> callable_rules() { return kCallableRules; }

}  // namespace graphlift::capture
