// Owns: making a recipe's nodes: new objects with their early parts. A row per node kind.
// Must not: fill late parts, or call __new__, __init__ or any other method of a Python class.
#include <array>

#include "base/error.h"
#include "capture/recipe_parts.h"
#include "cpython/set_table.h"

namespace graphlift::capture {
namespace {

using Node = RecipeNode;
using In = RecipeInput;

PyTypeObject* as_type(const Ref& object) { return reinterpret_cast<PyTypeObject*>(object.get()); }

Ref items_tuple(std::span<const int> children, const In& in) {
  const Py_ssize_t count = static_cast<Py_ssize_t>(children.size());
  Ref tuple = Ref::steal(PyTuple_New(count));
  for (Py_ssize_t i = 0; tuple && i < count; ++i)
    PyTuple_SET_ITEM(tuple.get(), i, Py_NewRef(in.at(children[static_cast<size_t>(i)])));
  return tuple;
}

// An instance with its C base's content and nothing else.
Ref allocate(const Ref& type, PyObject* args) {
  return Ref::steal(c_base(as_type(type))->tp_new(as_type(type), args, nullptr));
}

Ref allocate_empty(const Ref& type) {
  Ref none = Ref::steal(PyTuple_New(0));
  return none ? allocate(type, none.get()) : Ref();
}

Ref allocate_with(const Ref& type, const Ref& content) {
  Ref args = content ? Ref::steal(PyTuple_Pack(1, content.get())) : Ref();
  return args ? allocate(type, args.get()) : Ref();
}

Ref make_Constant(const Node& node, const In&) { return node.object; }
Ref make_Fetched(const Node& node, const In& in) { return Ref::borrow(in.fetched[node.index]); }
Ref make_Tensor(const Node& node, const In& in) { return Ref::borrow(in.tensors[node.index]); }

Ref make_Number(const Node& node, const In& in) { return Ref::steal(PyNumber_Float(in.tensors[node.index])); }

Ref make_Symbol(const Node& node, const In& in) {
  return Ref::steal(PyLong_FromLongLong(node.sym.eval({in.symbols, static_cast<size_t>(node.index)})));
}

Ref make_Tuple(const Node& node, const In& in) {
  Ref tuple = items_tuple(node.children, in);
  return node.object ? allocate_with(node.object, tuple) : tuple;
}

Ref make_List(const Node& node, const In&) {
  return node.object ? allocate_empty(node.object)
                     : Ref::steal(PyList_New(static_cast<Py_ssize_t>(node.children.size())));
}

Ref make_Dict(const Node& node, const In&) {
  return node.object ? allocate_empty(node.object) : Ref::steal(PyDict_New());
}
Ref make_Set(const Node& node, const In&) {
  return node.object ? allocate_empty(node.object) : Ref::steal(PySet_New(nullptr));
}

Ref make_FrozenSet(const Node& node, const In& in) {
  const bool copies = node.index == kCopies;
  Ref set = copies ? cpython::copy_of_set(in.at(node.children[0]), true) : Ref::steal(PyFrozenSet_New(nullptr));
  for (size_t i = 0; !copies && i < node.children.size(); ++i)
    if (!set || PySet_Add(set.get(), in.at(node.children[i])) < 0) return Ref();
  return node.object ? allocate_with(node.object, set) : set;
}

Ref make_Deque(const Node& node, const In& in) {
  Ref deque = allocate_empty(node.object);
  Ref none = deque ? Ref::steal(PyTuple_New(0)) : Ref();
  Ref args = none ? Ref::steal(PyTuple_Pack(2, none.get(), in.at(node.children[0]))) : Ref();
  if (!args || deque_type()->tp_init(deque.get(), args.get(), nullptr) < 0) return Ref();
  return deque;
}

Ref make_Slice(const Node& node, const In& in) {
  return Ref::steal(PySlice_New(in.at(node.children[0]), in.at(node.children[1]), in.at(node.children[2])));
}

Ref make_Cell(const Node&, const In&) { return Ref::steal(PyCell_New(nullptr)); }

Ref make_Function(const Node& node, const In& in) {
  Ref function =
      Ref::steal(PyFunction_NewWithQualName(node.object.get(), in.at(node.children[0]), in.at(node.children[1])));
  PyObject* closure = in.at(node.children[2]);
  if (function && closure && PyFunction_SetClosure(function.get(), closure) < 0) return Ref();
  return function;
}

Ref make_Method(const Node& node, const In& in) {
  return Ref::steal(PyMethod_New(in.at(node.children[0]), in.at(node.children[1])));
}

Ref make_Bound(const Node& node, const In& in) {
  PyObject* descriptor = in.at(node.children[0]);
  PyObject* self = in.at(node.children[1]);
  return Ref::steal(Py_TYPE(descriptor)->tp_descr_get(descriptor, self, reinterpret_cast<PyObject*>(Py_TYPE(self))));
}

Ref make_Instance(const Node& node, const In& in) {
  if (node.children.empty()) return allocate_empty(node.object);
  Ref args = items_tuple(node.children, in);
  return args ? allocate(node.object, args.get()) : Ref();
}

Ref make_Call(const Node& node, const In& in) {
  std::array<PyObject*, 8> args;
  const size_t count = node.children.size() - 1;
  if (count > args.size()) {
    Ref tuple = items_tuple(std::span(node.children).subspan(1), in);
    return tuple ? Ref::steal(PyObject_Call(in.at(node.children[0]), tuple.get(), nullptr)) : Ref();
  }
  for (size_t i = 0; i < count; ++i) args[i] = in.at(node.children[i + 1]);
  return Ref::steal(PyObject_Vectorcall(in.at(node.children[0]), args.data(), count, nullptr));
}

using Maker = Ref (*)(const Node&, const In&);
constexpr Maker kMakers[] = {
#define NODE(kind, text) make_##kind,
    GRAPHLIFT_RECIPE_NODES(NODE)
#undef NODE
};

}  // namespace

Ref make_node(const RecipeNode& node, const RecipeInput& input) {
  return kMakers[static_cast<size_t>(node.kind)](node, input);
}

}  // namespace graphlift::capture
