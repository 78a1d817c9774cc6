// Owns: C objects that are made again by what their own C-level __reduce_ex__ says (iterators, partials), and which C
// values are as good as constants. Default deny: a type that is in no table here can't be rebuilt. Must not: ask a type
// whose __reduce_ex__ may be Python.
#include <Python.h>

#include <algorithm>
#include <iterator>
#include <string_view>

#include "capture/recipe_parts.h"
#include "capture/snapshot_builder.h"

namespace graphlift::capture {
namespace {

using Builder = SnapshotBuilder;

// Immutable, compared by value, hold no other objects that could be fresh.
constexpr std::string_view kFrozen[] = {
    "range",
    "datetime.date",
    "datetime.time",
    "datetime.datetime",
    "datetime.timedelta",
    "datetime.timezone",
    "decimal.Decimal",
    "re.Pattern",
    "re.Match",
    "types.GenericAlias",
    "types.UnionType",
    "_struct.Struct",
    "torch.device",
    "torch.dtype",
    "torch.layout",
    "torch.memory_format",
    "torch.finfo",
    "torch.iinfo",
    "numpy.float64",
    "numpy.float32",
    "numpy.float16",
    "numpy.int64",
    "numpy.int32",
    "numpy.int16",
    "numpy.int8",
    "numpy.uint8",
    "numpy.uint16",
    "numpy.uint32",
    "numpy.uint64",
    "numpy.bool_",
    "numpy.bool",
};

// `iterates`: making it calls iter() on its arguments, so these must not have a Python __iter__.
struct ReduceRow {
  std::string_view type;
  bool iterates;
};

constexpr ReduceRow kReduced[] = {
    {"list_iterator", false},
    {"list_reverseiterator", false},
    {"tuple_iterator", false},
    {"range_iterator", false},
    {"longrange_iterator", false},
    {"str_iterator", false},
    {"str_ascii_iterator", false},
    {"bytes_iterator", false},
    {"set_iterator", false},
    {"dict_keyiterator", false},
    {"dict_valueiterator", false},
    {"dict_itemiterator", false},
    {"dict_reversekeyiterator", false},
    {"dict_reversevalueiterator", false},
    {"dict_reverseitemiterator", false},
    {"odict_iterator", false},
    {"enumerate", true},
    {"reversed", true},
    {"zip", true},
    {"map", true},
    {"filter", true},
    {"itertools.count", false},
    {"itertools.cycle", true},
    {"itertools.repeat", false},
    {"itertools.chain", true},
    {"itertools.islice", true},
    {"itertools.starmap", true},
    {"itertools.takewhile", true},
    {"itertools.dropwhile", true},
    {"itertools.filterfalse", true},
    {"itertools.compress", true},
    {"itertools.accumulate", true},
    {"itertools.zip_longest", true},
    {"itertools.product", true},
    {"itertools.permutations", true},
    {"itertools.combinations", true},
    {"itertools.combinations_with_replacement", true},
    {"functools.partial", false},
    {"operator.itemgetter", false},
    {"operator.attrgetter", false},
    {"operator.methodcaller", false},
    {"bytearray", false},
};

const ReduceRow* find_row(PyTypeObject* type) {
  const std::string_view name = type->tp_name;
  const auto* row =
      std::find_if(std::begin(kReduced), std::end(kReduced), [&](const ReduceRow& r) { return r.type == name; });
  return row == std::end(kReduced) || is_python_class(type) ? nullptr : row;
}

bool matches_reduced(PyObject* object, PyTypeObject*) { return find_row(Py_TYPE(object)) != nullptr; }

Ref reduce(PyObject* object) {
  std::optional<QuietWarnings> quiet;
  if (warns_of_reduce(Py_TYPE(object))) quiet.emplace();
  return Ref::steal(PyObject_CallMethod(object, "__reduce_ex__", "i", 4));
}

bool has_python_iteration(PyObject* object) {
  PyTypeObject* type = Py_TYPE(object);
  return is_python_class(type) && (type->tp_iter || PySequence_Check(object));
}

bool is_c_callable(PyObject* object) {
  if (PyType_Check(object)) return !is_python_class(reinterpret_cast<PyTypeObject*>(object));
  return PyCFunction_Check(object);
}

// A tuple (callable, args[, state]) of C level, or null.
PyObject* reduction(Builder& builder, PyObject* object) {
  PyObject* parts = builder.keep(reduce(object));
  if (!parts || !PyTuple_CheckExact(parts) || PyTuple_GET_SIZE(parts) < 2) return nullptr;
  for (Py_ssize_t i = 3; i < PyTuple_GET_SIZE(parts); ++i)
    if (PyTuple_GET_ITEM(parts, i) != Py_None) return nullptr;
  PyObject* args = PyTuple_GET_ITEM(parts, 1);
  if (!is_c_callable(PyTuple_GET_ITEM(parts, 0)) || !PyTuple_CheckExact(args)) return nullptr;
  const bool iterates = find_row(Py_TYPE(object))->iterates;
  for (Py_ssize_t i = 0; iterates && i < PyTuple_GET_SIZE(args); ++i)
    if (has_python_iteration(PyTuple_GET_ITEM(args, i))) return nullptr;
  return parts;
}

int early_reduced(Builder& builder, PyObject* object) {
  PyObject* parts = reduction(builder, object);
  if (!parts) return -1;
  PyObject* args = PyTuple_GET_ITEM(parts, 1);
  RecipeNode node{NodeKind::Call};
  node.children.push_back(builder.constant(PyTuple_GET_ITEM(parts, 0)));
  if (!builder.nodes_of({&PyTuple_GET_ITEM(args, 0), static_cast<size_t>(PyTuple_GET_SIZE(args))}, &node.children))
    return -1;
  const int made = builder.add(std::move(node));
  if (PyTuple_GET_SIZE(parts) > 2) builder.call_states[made] = PyTuple_GET_ITEM(parts, 2);
  return made;
}

bool late_reduced(Builder& builder, PyObject*, int node) {
  auto state = builder.call_states.find(node);
  if (state == builder.call_states.end() || state->second == Py_None) return true;
  const int child = builder.node_of(state->second);
  if (child < 0) return false;
  builder.at(node).state = {child};
  return true;
}

constexpr FreshRule kReduceRules[] = {{"object of a C type", matches_reduced, early_reduced, late_reduced}};

}  // namespace

std::span<const FreshRule> reduce_rules() { return kReduceRules; }

bool is_frozen_value(PyObject* object) {
  if (PySlice_Check(object)) {
    auto* slice = reinterpret_cast<PySliceObject*>(object);
    return is_value_constant(slice->start) && is_value_constant(slice->stop) && is_value_constant(slice->step);
  }
  PyTypeObject* type = Py_TYPE(object);
  return std::find(std::begin(kFrozen), std::end(kFrozen), type->tp_name) != std::end(kFrozen) &&
         !is_python_class(type);
}

}  // namespace graphlift::capture
