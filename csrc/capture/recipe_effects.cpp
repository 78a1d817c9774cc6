// Owns: replaying effects on outside objects. A row per effect kind; each works on raw storage.
// Must not: call a method of a Python class.
#include <array>

#include "base/error.h"
#include "capture/recipe_parts.h"
#include "cpython/set_table.h"

namespace graphlift::capture {
namespace {

using Operands = std::span<PyObject* const>;  // null: absent

bool run_SetKey(Operands of) { return put(of[0], of[1], of[2]); }

bool run_DelKey(Operands of) {
  const int present = PyDict_Contains(of[0], of[1]);
  if (present <= 0) return present == 0;
  return (PyODict_Check(of[0]) ? PyODict_DelItem(of[0], of[1]) : PyDict_DelItem(of[0], of[1])) == 0;
}

bool put_all(PyObject* dict, PyObject* source) {
  PyObject *key, *value;
  Py_ssize_t position = 0;
  while (PyDict_Next(source, &position, &key, &value))
    if (!put(dict, key, value)) return false;
  return true;
}

bool run_ReplaceDict(Operands of) {
  PyDict_Clear(of[0]);
  return put_all(of[0], of[1]);
}

bool run_ReplaceOrderedDict(Operands of) { return clear_ordered_dict(of[0]) && put_all(of[0], of[1]); }

bool run_ReplaceList(Operands of) { return PyList_SetSlice(of[0], 0, PyList_GET_SIZE(of[0]), of[1]) == 0; }

bool run_ExtendList(Operands of) {
  const Py_ssize_t count = PyList_GET_SIZE(of[1]);
  if (count == 1) return PyList_Append(of[0], PyList_GET_ITEM(of[1], 0)) == 0;
  const Py_ssize_t end = PyList_GET_SIZE(of[0]);
  return PyList_SetSlice(of[0], end, end, of[1]) == 0;
}

bool run_ReplaceSet(Operands of) {
  cpython::swap_sets(of[0], of[1]);
  return true;
}

bool run_ReplaceDeque(Operands of) { return refill_deque(of[0], of[1]); }
bool run_SetSlot(Operands of) { return Py_TYPE(of[1])->tp_descr_set(of[1], of[0], of[2]) == 0; }
bool run_SetGrad(Operands of) { return PyObject_SetAttrString(of[0], "grad", of[1]) == 0; }
bool run_SetCell(Operands of) { return PyCell_Set(of[0], of[1]) == 0; }

bool run_Call(Operands of) {
  return static_cast<bool>(Ref::steal(PyObject_Vectorcall(of[0], of.data() + 1, of.size() - 1, nullptr)));
}

bool run_CallAmbient(Operands of) { return run_Call(of); }

using Runner = bool (*)(Operands);
constexpr Runner kRunners[] = {
#define EFFECT(kind, text) run_##kind,
    GRAPHLIFT_EFFECTS(EFFECT)
#undef EFFECT
};

}  // namespace

bool run_effect(const Effect& effect, const RecipeInput& input) {
  std::array<PyObject*, 12> few;
  std::vector<PyObject*> many;
  const size_t count = effect.operands.size();
  PyObject** operands = few.data();
  if (count > few.size()) {
    many.resize(count);
    operands = many.data();
  }
  for (size_t i = 0; i < count; ++i) operands[i] = input.at(effect.operands[i]);
  return kRunners[static_cast<size_t>(effect.kind)](Operands(operands, count));
}

}  // namespace graphlift::capture
