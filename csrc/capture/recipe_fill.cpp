// Owns: filling the late parts of a recipe's nodes, when all of them exist: items of mutable containers, contents of
// cells, attributes, state of iterators. Must not: call a method of a Python class.
#include "base/error.h"
#include "capture/recipe_parts.h"
#include "cpython/set_table.h"

namespace graphlift::capture {
namespace {

using Node = RecipeNode;
using In = RecipeInput;

bool fill_List(const Node& node, PyObject* list, const In& in) {
  const bool exact = !node.object;  // made with its final size
  for (size_t i = 0; i < node.children.size(); ++i) {
    PyObject* item = in.at(node.children[i]);
    if (exact)
      PyList_SET_ITEM(list, static_cast<Py_ssize_t>(i), Py_NewRef(item));
    else if (PyList_Append(list, item) < 0)
      return false;
  }
  return true;
}

bool fill_Dict(const Node& node, PyObject* dict, const In& in) {
  for (size_t i = 0; i < node.children.size(); i += 2)
    if (!put(dict, in.at(node.children[i]), in.at(node.children[i + 1]))) return false;
  return true;
}

bool fill_Set(const Node& node, PyObject* set, const In& in) {
  if (node.index == kCopies) {
    Ref same = cpython::copy_of_set(in.at(node.children[0]));
    if (same) cpython::swap_sets(set, same.get());
    return static_cast<bool>(same);
  }
  for (int child : node.children)
    if (PySet_Add(set, in.at(child)) < 0) return false;
  return true;
}

bool fill_Deque(const Node& node, PyObject* deque, const In& in) {
  const size_t count = node.children.size() - 1;
  Ref items = Ref::steal(PyTuple_New(static_cast<Py_ssize_t>(count)));
  for (size_t i = 0; items && i < count; ++i)
    PyTuple_SET_ITEM(items.get(), static_cast<Py_ssize_t>(i), Py_NewRef(in.at(node.children[i + 1])));
  return items && refill_deque(deque, items.get());
}

bool fill_Cell(const Node& node, PyObject* cell, const In& in) {
  return node.children.empty() || PyCell_Set(cell, in.at(node.children[0])) == 0;
}

bool fill_Call(const Node& node, PyObject* object, const In& in) {
  if (node.state.empty()) return true;
  static PyObject* name = [] {
    PyObject* made = PyUnicode_InternFromString("__setstate__");
    GL_CHECK(made, "a name can't be made");
    return made;
  }();
  PyObject* args[] = {object, in.at(node.state[0])};
  std::optional<QuietWarnings> quiet;
  if (warns_of_reduce(Py_TYPE(object))) quiet.emplace();
  return static_cast<bool>(Ref::steal(PyObject_VectorcallMethod(name, args, 2, nullptr)));
}

// Into the instance dict without a look at the class's __setattr__ or its data descriptors. Where no data descriptor
// hides the name, the values may stay inline in the object.
bool set_attribute(PyObject* object, PyObject* name, PyObject* value) {
  PyObject* descriptor = _PyType_Lookup(Py_TYPE(object), name);
  if (!descriptor || !Py_TYPE(descriptor)->tp_descr_set) return PyObject_GenericSetAttr(object, name, value) == 0;
  Ref dict = Ref::steal(PyObject_GenericGetDict(object, nullptr));
  return dict && PyDict_SetItem(dict.get(), name, value) == 0;
}

bool fill_attributes(const Node& node, PyObject* object, const In& in) {
  for (size_t i = 0; i < node.state.size(); i += 2) {
    PyObject* key = in.at(node.state[i]);
    PyObject* value = in.at(node.state[i + 1]);
    const bool done =
        PyUnicode_Check(key) ? set_attribute(object, key, value) : Py_TYPE(key)->tp_descr_set(key, object, value) == 0;
    if (!done) return false;
  }
  return true;
}

using Filler = bool (*)(const Node&, PyObject*, const In&);

constexpr Filler filler_of(NodeKind kind) {
  switch (kind) {
    case NodeKind::List:
      return fill_List;
    case NodeKind::Dict:
      return fill_Dict;
    case NodeKind::Set:
      return fill_Set;
    case NodeKind::Deque:
      return fill_Deque;
    case NodeKind::Cell:
      return fill_Cell;
    case NodeKind::Call:
      return fill_Call;
    default:
      return nullptr;
  }
}

constexpr Filler kFillers[] = {
#define NODE(kind, text) filler_of(NodeKind::kind),
    GRAPHLIFT_RECIPE_NODES(NODE)
#undef NODE
};

}  // namespace

bool has_late_parts(const RecipeNode& node) {
  return !node.state.empty() || kFillers[static_cast<size_t>(node.kind)] != nullptr;
}

bool fill_node(const RecipeNode& node, PyObject* object, const RecipeInput& input) {
  const Filler filler = kFillers[static_cast<size_t>(node.kind)];
  if (filler && !filler(node, object, input)) return false;
  return node.kind == NodeKind::Call || fill_attributes(node, object, input);
}

}  // namespace graphlift::capture
