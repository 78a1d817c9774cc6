// Owns: rules for fresh containers: tuples, lists, dicts, sets, deques and their subclasses, slices, cells.
// Must not: use a method that a subclass may override; raw storage only.
#include <algorithm>

#include "capture/c_reads.h"
#include "capture/recipe_parts.h"
#include "capture/set_order.h"
#include "capture/snapshot_builder.h"
#include "cpython/instance.h"
#include "cpython/raw_dict.h"
#include "cpython/set_table.h"

namespace graphlift::capture {
namespace {

using Builder = SnapshotBuilder;

Ref type_unless(PyObject* object, PyTypeObject* plain) {
  return Py_IS_TYPE(object, plain) ? Ref() : Ref::borrow(reinterpret_cast<PyObject*>(Py_TYPE(object)));
}

// Named results (torch.return_types, os.stat_result): tuples that C code makes with their own layout.
bool is_struct_sequence(PyTypeObject* type) {
  PyObject* dict = cpython::type_dict(type);
  return dict && PyDict_GetItemString(dict, "n_sequence_fields");
}

bool matches_tuple(PyObject* object, PyTypeObject* base) {
  return PyTuple_Check(object) &&
         (base == &PyTuple_Type || is_struct_sequence(base) || base->tp_name == std::string_view("torch.Size"));
}

int early_tuple(Builder& builder, PyObject* tuple) {
  RecipeNode node{NodeKind::Tuple, type_unless(tuple, &PyTuple_Type)};
  if (!builder.nodes_of({&PyTuple_GET_ITEM(tuple, 0), static_cast<size_t>(PyTuple_GET_SIZE(tuple))}, &node.children))
    return -1;
  return builder.add(std::move(node));
}

bool matches_list(PyObject*, PyTypeObject* base) { return base == &PyList_Type; }

int early_list(Builder& builder, PyObject* list) {
  return builder.add({NodeKind::List, type_unless(list, &PyList_Type)});
}

bool late_list(Builder& builder, PyObject* list, int node) {
  std::vector<int> children;
  const auto* items = reinterpret_cast<PyListObject*>(list)->ob_item;
  if (!builder.nodes_of({items, static_cast<size_t>(PyList_GET_SIZE(list))}, &children)) return false;
  builder.at(node).children = std::move(children);
  return add_attributes(builder, list, node);
}

bool is_default_dict(PyTypeObject* type) { return type->tp_name == std::string_view("collections.defaultdict"); }

bool matches_dict(PyObject*, PyTypeObject* base) {
  return base == &PyDict_Type || base == &PyODict_Type || is_default_dict(base);
}

int early_dict(Builder& builder, PyObject* dict) {
  return builder.add({NodeKind::Dict, type_unless(dict, &PyDict_Type)});
}

bool add_item(Builder& builder, PyObject* key, PyObject* value, std::vector<int>* children) {
  if (!is_safe_key(key)) return builder.fail(key) >= 0;
  PyObject* pair[] = {key, value};
  return builder.nodes_of(pair, children);
}

// An OrderedDict keeps its order beside its storage.
bool ordered_items(Builder& builder, PyObject* dict, std::vector<int>* children) {
  Ref iterator = Ref::steal(PyODict_Type.tp_iter(dict));
  while (iterator) {
    PyObject* key = builder.keep(Ref::steal(Py_TYPE(iterator.get())->tp_iternext(iterator.get())));
    if (!key) return !PyErr_Occurred();
    PyObject* value = is_safe_key(key) ? PyDict_GetItemWithError(dict, key) : Py_None;
    if (!value || !add_item(builder, key, value, children)) return false;
  }
  return false;
}

bool plain_items(Builder& builder, PyObject* dict, std::vector<int>* children) {
  PyObject *key, *value;
  Py_ssize_t position = 0;
  while (PyDict_Next(dict, &position, &key, &value))
    if (!add_item(builder, key, value, children)) return false;
  return true;
}

bool late_dict(Builder& builder, PyObject* dict, int node) {
  std::vector<int> children;
  if (!(PyODict_Check(dict) ? ordered_items : plain_items)(builder, dict, &children)) return false;
  builder.at(node).children = std::move(children);
  return add_attributes(builder, dict, node);
}

bool set_items(Builder& builder, PyObject* set, std::vector<int>* children) {
  Py_ssize_t position = 0;
  PyObject* item;
  Py_hash_t hash;
  while (cpython::raw_set_next(set, &position, &item, &hash)) {
    if (!is_safe_key(item)) return builder.fail(item) >= 0;
    // Where two are in each other's way, the one that came first decides, which is not known any more.
    if (PySet_GET_SIZE(set) > 1 && hashes_address(builder.capture, item)) return builder.fail(set) >= 0;
    const int node = builder.node_of(item);
    if (node < 0) return false;
    children->push_back(node);
  }
  return true;
}

bool set_template(Builder& builder, PyObject* set, std::vector<int>* children) {
  Ref same = cpython::copy_of_set(set, PyFrozenSet_Check(set));
  if (!same) return false;
  children->push_back(builder.add({NodeKind::Constant, std::move(same)}));
  return true;
}

bool matches_set(PyObject*, PyTypeObject* base) { return base == &PySet_Type; }

int early_set(Builder& builder, PyObject* set) { return builder.add({NodeKind::Set, type_unless(set, &PySet_Type)}); }

bool late_set(Builder& builder, PyObject* set, int node) {
  std::vector<int> children;
  if (has_fixed_keys(set)) builder.at(node).index = kCopies;
  if (!(has_fixed_keys(set) ? set_template : set_items)(builder, set, &children)) return false;
  builder.at(node).children = std::move(children);
  return add_attributes(builder, set, node);
}

bool matches_frozen_set(PyObject*, PyTypeObject* base) { return base == &PyFrozenSet_Type; }

int early_frozen_set(Builder& builder, PyObject* set) {
  RecipeNode node{NodeKind::FrozenSet, type_unless(set, &PyFrozenSet_Type)};
  if (has_fixed_keys(set)) node.index = kCopies;
  if (!(has_fixed_keys(set) ? set_template : set_items)(builder, set, &node.children)) return -1;
  return builder.add(std::move(node));
}

bool matches_deque(PyObject*, PyTypeObject* base) { return base == deque_type(); }

int early_deque(Builder& builder, PyObject* deque) {
  PyObject* descriptor = PyDict_GetItemString(cpython::type_dict(deque_type()), "maxlen");
  PyObject* most = builder.keep(Ref::steal(Py_TYPE(descriptor)->tp_descr_get(descriptor, deque, nullptr)));
  if (!most) return -1;
  RecipeNode node{NodeKind::Deque, Ref::borrow(reinterpret_cast<PyObject*>(Py_TYPE(deque)))};
  node.children.push_back(builder.node_of(most));
  return builder.add(std::move(node));
}

bool late_deque(Builder& builder, PyObject* deque, int node) {
  std::vector<int> children = builder.at(node).children;
  Ref iterator = Ref::steal(deque_type()->tp_iter(deque));
  while (Ref item = Ref::steal(iterator ? Py_TYPE(iterator.get())->tp_iternext(iterator.get()) : nullptr)) {
    const int child = builder.node_of(item.get());  // the deque keeps it alive
    if (child < 0) return false;
    children.push_back(child);
  }
  if (PyErr_Occurred()) return false;
  builder.at(node).children = std::move(children);
  return add_attributes(builder, deque, node);
}

bool matches_slice(PyObject* object, PyTypeObject*) { return PySlice_Check(object); }

int early_slice(Builder& builder, PyObject* object) {
  auto* slice = reinterpret_cast<PySliceObject*>(object);
  PyObject* parts[] = {slice->start, slice->stop, slice->step};
  RecipeNode node{NodeKind::Slice};
  return builder.nodes_of(parts, &node.children) ? builder.add(std::move(node)) : -1;
}

bool matches_cell(PyObject* object, PyTypeObject*) { return PyCell_Check(object); }
int early_cell(Builder& builder, PyObject*) { return builder.add({NodeKind::Cell}); }

bool late_cell(Builder& builder, PyObject* cell, int node) {
  PyObject* content = PyCell_GET(cell);
  if (!content) return true;
  const int child = builder.node_of(content);
  if (child < 0) return false;
  builder.at(node).children = {child};
  return true;
}

constexpr FreshRule kContainerRules[] = {
    {"tuple", matches_tuple, early_tuple, add_attributes},
    {"list", matches_list, early_list, late_list},
    {"dict", matches_dict, early_dict, late_dict},
    {"set", matches_set, early_set, late_set},
    {"frozenset", matches_frozen_set, early_frozen_set, add_attributes},
    {"deque", matches_deque, early_deque, late_deque},
    {"slice", matches_slice, early_slice, nullptr},
    {"cell", matches_cell, early_cell, late_cell},
};

}  // namespace

std::span<const FreshRule> container_rules() { return kContainerRules; }

}  // namespace graphlift::capture
