// Owns: shadows: fresh copies of outside containers, made of what capture sees of their items, guarded whole.
// Must not: change the outside container.
#include "base/once.h"
#include "capture/containers.h"
#include "capture/recipe_parts.h"
#include "cpython/set_table.h"

namespace graphlift::capture {

using guards::GuardKind;
using guards::OriginId;
using guards::OriginKind;

namespace {

bool derives(PyObject* object, PyTypeObject* type) { return type && PyObject_TypeCheck(object, type); }

// The items of a list or tuple, each admitted.
Ref sequence_items(Capture& capture, Outside* outside, Py_ssize_t count) {
  Ref items = Ref::steal(PyTuple_New(count));
  for (Py_ssize_t i = 0; items && i < count; ++i) {
    Ref item = sequence_item(capture, outside->object.get(), i);
    if (!item) return Ref();
    PyTuple_SET_ITEM(items.get(), i, item.release());
  }
  return items;
}

Ref shadow_of_sequence(Capture& capture, Outside* outside, Kind kind) {
  PyObject* object = outside->object.get();
  const Py_ssize_t count = kind == Kind::List ? PyList_GET_SIZE(object) : PyTuple_GET_SIZE(object);
  capture.guards.add(outside->origin, GuardKind::Length, nullptr, count);
  Ref items = sequence_items(capture, outside, count);
  if (!items) return items;
  if (kind == Kind::List) return Ref::steal(PySequence_List(items.get()));
  if (PyTuple_CheckExact(object)) return items;
  // A subclass of tuple (a namedtuple): same class, no constructor of its own runs.
  Ref args = Ref::steal(PyTuple_Pack(1, items.get()));
  return args ? Ref::steal(PyTuple_Type.tp_new(Py_TYPE(object), args.get(), nullptr)) : Ref();
}

// The keys of an OrderedDict in its own order, which raw storage does not tell.
Ref ordered_keys(PyObject* dict) {
  Ref iterator = Ref::steal(PyODict_Type.tp_iter(dict));
  return iterator ? Ref::steal(PySequence_Tuple(iterator.get())) : Ref();
}

class OrderedKeysAre final : public guards::LeafCheck {
 public:
  explicit OrderedKeysAre(Ref keys) : keys_(std::move(keys)) {}
  bool check(PyObject* object, int64_t*) const override {
    if (!PyODict_Check(object) || PyDict_GET_SIZE(object) != PyTuple_GET_SIZE(keys_.get())) return false;
    Ref now = ordered_keys(object);
    const int equal = now ? PyObject_RichCompareBool(now.get(), keys_.get(), Py_EQ) : -1;
    if (equal < 0) PyErr_Clear();
    return equal == 1;
  }
  std::string text(const std::string& origin) const override { return "keys of " + origin + " are the same, in order"; }
  std::string explain(PyObject*) const override { return "has other keys, or in another order"; }
  int traverse(visitproc visit, void* arg) const override {
    Py_VISIT(keys_.get());
    return 0;
  }

 private:
  Ref keys_;
};

// Fills `shadow` from raw dict storage with the overlay applied.
int fill_dict(Capture& capture, Outside* outside, PyObject* shadow) {
  PyObject* source = outside->object.get();
  const bool ordered = PyODict_Check(source);
  Ref keys = ordered ? Ref() : Ref::steal(PyDict_Keys(source));
  Ref key_tuple = ordered ? ordered_keys(source) : keys ? Ref::steal(PyList_AsTuple(keys.get())) : Ref();
  if (!key_tuple) return -1;
  const Py_ssize_t count = PyTuple_GET_SIZE(key_tuple.get());
  for (Py_ssize_t i = 0; i < count; ++i)
    if (!is_guardable_key(PyTuple_GET_ITEM(key_tuple.get(), i)))
      return break_status(capture, "unguardable_key", Py_TYPE(PyTuple_GET_ITEM(key_tuple.get(), i))->tp_name);
  if (ordered)
    capture.guards.add_check(outside->origin, std::make_unique<OrderedKeysAre>(key_tuple));
  else
    capture.guards.add(outside->origin, GuardKind::KeysAre, key_tuple.get());
  for (Py_ssize_t i = 0; i < count; ++i) {
    PyObject* key = PyTuple_GET_ITEM(key_tuple.get(), i);
    Ref value = Ref::borrow(PyDict_GetItemWithError(source, key));
    if (!value) return -1;
    value = capture.admit(value.get(), capture.origins().child(outside->origin, OriginKind::DictItem, key));
    if (!value || PyObject_SetItem(shadow, key, value.get()) < 0) return -1;
  }
  return 0;
}

// A key of an overlay as the program sees it.
PyObject* seen_key(Capture& capture, PyObject* key) {
  auto found = capture.stand_ins.find(key);
  return found == capture.stand_ins.end() ? key : found->second.get();
}

int apply_overlay(Capture& capture, Outside* outside, PyObject* shadow) {
  if (!outside->overlay) return 0;
  for (const Ref& key : outside->reinserted)
    if (PyDict_Contains(shadow, key.get()) == 1 && PyObject_DelItem(shadow, key.get()) < 0) return -1;
  PyObject *stored, *value;
  Py_ssize_t position = 0;
  while (PyDict_Next(outside->overlay.get(), &position, &stored, &value)) {
    PyObject* key = seen_key(capture, stored);
    const bool gone = value == capture.objects.deleted();
    if (gone && PyDict_Contains(shadow, key) != 1) continue;
    if ((gone ? PyObject_DelItem(shadow, key) : PyObject_SetItem(shadow, key, value)) < 0) return -1;
  }
  return 0;
}

// Keys and values alternating, as the baseline of a dict.
Ref dict_baseline(PyObject* dict) {
  Ref flat = Ref::steal(PyTuple_New(2 * PyDict_GET_SIZE(dict)));
  PyObject *key, *value;
  Py_ssize_t position = 0, at = 0;
  while (flat && PyDict_Next(dict, &position, &key, &value)) {
    PyTuple_SET_ITEM(flat.get(), at++, Py_NewRef(key));
    PyTuple_SET_ITEM(flat.get(), at++, Py_NewRef(value));
  }
  return flat;
}

bool shadow_of_dict(Capture& capture, Outside* outside, Kind kind) {
  PyObject* ordered = reinterpret_cast<PyObject*>(&PyODict_Type);
  Ref shadow = Ref::steal(kind == Kind::OrderedDict ? PyObject_CallNoArgs(ordered) : PyDict_New());
  if (!shadow || fill_dict(capture, outside, shadow.get()) < 0) return false;
  Ref baseline = dict_baseline(shadow.get());
  if (!baseline || apply_overlay(capture, outside, shadow.get()) < 0) return false;
  outside->overlay.reset();
  outside->reinserted.clear();
  capture.objects.set_shadow(outside, std::move(shadow), std::move(baseline));
  return true;
}

bool shadow_of_set(Capture& capture, Outside* outside, Kind kind) {
  PyObject* object = outside->object.get();
  Ref frozen = Ref::steal(PyFrozenSet_New(object));
  Ref items = frozen ? Ref::steal(PySequence_Tuple(frozen.get())) : Ref();
  if (!items) return false;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(items.get()); ++i) {
    PyObject* item = PyTuple_GET_ITEM(items.get(), i);
    if (!is_value_constant(item) && !is_identity_constant(item) && !PyFunction_Check(item)) {
      break_here(capture, "unguardable_key", Py_TYPE(item)->tp_name);
      return false;
    }
  }
  capture.guards.add(outside->origin, GuardKind::SetIs, frozen.get());
  Ref shadow = cpython::copy_of_set(object, kind == Kind::FrozenSet);
  if (!shadow) return false;
  capture.objects.set_shadow(outside, std::move(shadow), std::move(items));
  return true;
}

// What was appended before the list had a shadow.
bool append_tail(Outside* outside) {
  if (!outside->tail) return true;
  const Py_ssize_t end = PyList_GET_SIZE(outside->shadow.get());
  const bool done = PyList_SetSlice(outside->shadow.get(), end, end, outside->tail.get()) == 0;
  outside->tail.reset();
  return done;
}

bool make_shadow(Capture& capture, Outside* outside, Kind kind) {
  switch (kind) {
    case Kind::List:
    case Kind::Tuple: {
      Ref shadow = shadow_of_sequence(capture, outside, kind);
      Ref baseline = shadow ? Ref::steal(PySequence_Tuple(shadow.get())) : Ref();
      if (!baseline) return false;
      capture.objects.set_shadow(outside, std::move(shadow), std::move(baseline));
      return append_tail(outside);
    }
    case Kind::Dict:
    case Kind::OrderedDict:
      return shadow_of_dict(capture, outside, kind);
    case Kind::Set:
    case Kind::FrozenSet:
      return shadow_of_set(capture, outside, kind);
    default:
      break_here(capture, "unsupported_item", Py_TYPE(outside->object.get())->tp_name);
      return false;
  }
}

}  // namespace

Kind container_kind(PyObject* object) {
  if (PyTuple_Check(object)) return Kind::Tuple;
  if (PyList_Check(object)) return Kind::List;
  if (PyODict_Check(object)) return Kind::OrderedDict;
  if (PyDict_Check(object)) return Kind::Dict;
  if (PyFrozenSet_Check(object)) return Kind::FrozenSet;
  if (PyAnySet_Check(object)) return Kind::Set;
  if (derives(object, deque_type())) return Kind::Deque;
  if (Py_IS_TYPE(object, &PyDictProxy_Type)) return Kind::MappingProxy;
  if (PyDictViewSet_Check(object) || PyDictValues_Check(object)) return Kind::DictView;
  return Kind::None;
}

Ref for_c_code(Capture& capture, PyObject* object) {
  Outside* outside = capture.objects.find(object);
  // A context that was copied here has values from outside that were never admitted.
  if (PyContext_CheckExact(object)) return break_here(capture, "unsupported_item", "contextvars.Context");
  if (!outside) return Ref::borrow(object);
  if (outside->shadow) return outside->shadow;
  const Kind kind = container_kind(object);
  if (kind == Kind::None) return Ref::borrow(object);
  return make_shadow(capture, outside, kind) ? outside->shadow : Ref();
}

Ref for_plain_c_code(Capture& capture, PyObject* object) {
  Ref result = for_c_code(capture, object);
  if (!result || !PySlice_Check(result.get())) return result ? capture.concrete(result.get()) : result;
  auto* slice = reinterpret_cast<PySliceObject*>(result.get());
  Ref start = capture.concrete(slice->start), stop = capture.concrete(slice->stop),
      step = capture.concrete(slice->step);
  return start && stop && step ? Ref::steal(PySlice_New(start.get(), stop.get(), step.get())) : Ref();
}

int list_append(Capture& capture, PyObject* list, PyObject* item) {
  Outside* outside = capture.objects.find(list);
  if (!outside) return PyList_Append(list, item);
  capture.objects.mutated(outside);
  if (outside->shadow) return PyList_Append(outside->shadow.get(), item);
  if (!outside->tail) outside->tail = Ref::steal(PyList_New(0));
  return outside->tail ? PyList_Append(outside->tail.get(), item) : -1;
}

void note_mutation(Capture& capture, PyObject* object) {
  if (Outside* outside = capture.objects.find(object)) capture.objects.mutated(outside);
}

Ref from_c_code(Capture& capture, Ref object) {
  if (!object) return object;
  Outside* outside = capture.objects.of_shadow(object.get());
  return outside ? outside->object : object;
}

bool holds_outside_container(Capture& capture, PyObject* object, int depth) {
  if (depth > 6) return true;
  auto bad = [&](PyObject* item) {
    if (capture.is_outside(item) && container_kind(item) != Kind::None) return true;
    return !capture.is_outside(item) && holds_outside_container(capture, item, depth + 1);
  };
  if (PyTuple_Check(object) || PyList_Check(object)) {
    Ref items = Ref::steal(PySequence_Fast(object, ""));
    for (Py_ssize_t i = 0; items && i < PySequence_Fast_GET_SIZE(items.get()); ++i)
      if (bad(PySequence_Fast_GET_ITEM(items.get(), i))) return true;
    return false;
  }
  if (PyDict_Check(object)) {
    PyObject *key, *value;
    Py_ssize_t position = 0;
    while (PyDict_Next(object, &position, &key, &value))
      if (bad(key) || bad(value)) return true;
  }
  return false;
}

}  // namespace graphlift::capture
