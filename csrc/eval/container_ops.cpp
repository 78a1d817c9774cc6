// Owns: micro-ops that build and fill containers and strings, and unpack. What is built in one instruction is reached
// directly; filling goes through Semantics.
#include <vector>

#include "cpython/api.h"
#include "eval/activation.h"

namespace graphlift::eval {
namespace {

// Fills a new tuple or list from the topmost values, which it takes over.
template <auto SetItem>
Flow gather(Activation& a, int count, Ref made) {
  if (!made) return Flow::Error;
  PyObject** values = a.from_top(count);
  for (int i = 0; i < count; ++i) SetItem(made.get(), i, std::exchange(values[i], nullptr));
  a.drop(count);
  a.push(std::move(made));
  return Flow::Next;
}

void set_tuple_item(PyObject* tuple, int i, PyObject* value) { PyTuple_SET_ITEM(tuple, i, value); }
void set_list_item(PyObject* list, int i, PyObject* value) { PyList_SET_ITEM(list, i, value); }

Flow push_unpacked(Activation& a, int before, int after, bool star) {
  std::vector<Ref> values(static_cast<size_t>(before + after + (star ? 1 : 0)));
  if (a.semantics.unpack(a.peek(1), before, after, star, values.data()) < 0) return Flow::Error;
  a.drop(1);
  while (!values.empty()) {
    a.push(std::move(values.back()));
    values.pop_back();
  }
  return Flow::Next;
}

}  // namespace

Flow do_BuildTuple(Activation& a, int count) {
  return gather<set_tuple_item>(a, count, Ref::steal(PyTuple_New(count)));
}

Flow do_BuildList(Activation& a, int count) { return gather<set_list_item>(a, count, Ref::steal(PyList_New(count))); }

Flow do_BuildSet(Activation& a, int count) {
  Ref set = Ref::steal(PySet_New(nullptr));
  if (!set) return Flow::Error;
  for (int i = count; i > 0; --i) {
    if (a.semantics.set_add(set.get(), a.peek(i)) < 0) return Flow::Error;
  }
  a.drop(count);
  return a.push_result(std::move(set));
}

Flow do_BuildMap(Activation& a, int count) {
  Ref dict = Ref::steal(PyDict_New());
  if (!dict) return Flow::Error;
  for (int i = 2 * count; i > 0; i -= 2) {
    if (a.semantics.map_add(dict.get(), a.peek(i), a.peek(i - 1)) < 0) return Flow::Error;
  }
  a.drop(2 * count);
  return a.push_result(std::move(dict));
}

Flow do_BuildConstKeyMap(Activation& a, int count) {
  Ref dict = Ref::steal(PyDict_New());
  if (!dict) return Flow::Error;
  for (int i = 0; i < count; ++i) {
    PyObject* key = PyTuple_GET_ITEM(a.peek(1), i);
    if (PyDict_SetItem(dict.get(), key, a.peek(count + 1 - i)) < 0) return Flow::Error;
  }
  return a.replace(count + 1, std::move(dict));
}

Flow do_BuildString(Activation& a, int count) {
  Ref text = cpython::join(a.from_top(count), count);
  if (!text) return Flow::Error;
  a.drop(count);
  return a.push_result(std::move(text));
}

Flow do_ListToTuple(Activation& a, int) { return a.replace(1, a.semantics.list_to_tuple(a.peek(1))); }
Flow do_ListAppend(Activation& a, int n) { return a.consume(1, a.semantics.list_append(a.peek(n + 1), a.peek(1))); }
Flow do_SetAdd(Activation& a, int n) { return a.consume(1, a.semantics.set_add(a.peek(n + 1), a.peek(1))); }
Flow do_MapAdd(Activation& a, int n) { return a.consume(2, a.semantics.map_add(a.peek(n + 2), a.peek(2), a.peek(1))); }

Flow do_ListExtend(Activation& a, int n) { return a.consume(1, a.semantics.list_extend(a.peek(n + 1), a.peek(1))); }

Flow do_SetUpdate(Activation& a, int n) { return a.consume(1, a.semantics.set_update(a.peek(n + 1), a.peek(1))); }
Flow do_DictUpdate(Activation& a, int n) { return a.consume(1, a.semantics.dict_update(a.peek(n + 1), a.peek(1))); }

Flow do_DictMerge(Activation& a, int n) {
  // Below the dict: the arguments, then callable and null in either order.
  PyObject* callable = a.peek(n + 3) ? a.peek(n + 3) : a.peek(n + 4);
  return a.consume(1, a.semantics.dict_merge(a.peek(n + 1), a.peek(1), callable));
}

Flow do_UnpackSequence(Activation& a, int count) { return push_unpacked(a, count, 0, false); }
Flow do_UnpackEx(Activation& a, int arg) { return push_unpacked(a, arg & 0xff, arg >> 8, true); }

Flow do_FormatValue(Activation& a, int arg) {
  static constexpr int conversions[] = {0, 's', 'r', 'a'};
  const bool with_spec = (arg & 4) != 0;
  PyObject* spec = with_spec ? a.peek(1) : nullptr;
  PyObject* value = a.peek(with_spec ? 2 : 1);
  return a.replace(with_spec ? 2 : 1, a.semantics.format(value, conversions[arg & 3], spec));
}

Flow do_ConvertValue(Activation& a, int kind) {
  static constexpr int conversions[] = {0, 's', 'r', 'a'};
  return a.replace(1, a.semantics.convert(a.peek(1), conversions[kind & 3]));
}

Flow do_FormatSimple(Activation& a, int) { return a.replace(1, a.semantics.format(a.peek(1), 0, nullptr)); }
Flow do_FormatWithSpec(Activation& a, int) { return a.replace(2, a.semantics.format(a.peek(2), 0, a.peek(1))); }

}  // namespace graphlift::eval
