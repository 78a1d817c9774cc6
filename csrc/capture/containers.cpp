// Owns: see containers.h; dicts, fields and instance dicts. Shadows are in shadows.cpp.
#include "capture/containers.h"

#include "capture/c_reads.h"
#include "capture/items.h"
#include "cpython/hook.h"
#include "cpython/instance.h"
#include "cpython/raw_dict.h"

namespace graphlift::capture {

using guards::GuardKind;
using guards::OriginId;
using guards::OriginKind;

bool is_guardable_key(PyObject* key) {
  if (is_value_constant(key) || is_identity_constant(key)) return true;
  if (PyTuple_CheckExact(key)) {
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(key); ++i)
      if (!is_guardable_key(PyTuple_GET_ITEM(key, i))) return false;
    return true;
  }
  PyTypeObject* type = Py_TYPE(key);
  return PyFunction_Check(key) ||
         (type->tp_hash == PyBaseObject_Type.tp_hash && type->tp_richcompare == PyBaseObject_Type.tp_richcompare);
}

namespace {

bool is_a_frames(OriginKind kind) {
  return kind == OriginKind::Local || kind == OriginKind::Stack || kind == OriginKind::Caller;
}

// An object from outside as a key: the region is tied to it. False: one that differs from call to call.
bool tie(Capture& capture, PyObject* key) {
  for (Py_ssize_t i = 0; PyTuple_CheckExact(key) && i < PyTuple_GET_SIZE(key); ++i)
    if (!tie(capture, PyTuple_GET_ITEM(key, i))) return false;
  const Outside* outside = capture.objects.find(key);
  if (!outside) return true;
  const OriginKind kind = capture.origins().at(outside->origin).kind;
  if (is_a_frames(kind)) return false;
  if (kind != OriginKind::Constant) capture.guards.add(outside->origin, GuardKind::Is, key);
  return true;
}

// A key as the storage of an outside dict knows it: the tensor behind a stand-in, which the region is then tied to.
// Null after a break: a key that differs from call to call, or one without a guard.
PyObject* stored_key(Capture& capture, PyObject* key) {
  auto found = capture.tensor_of_stand_in.find(key);
  if (found != capture.tensor_of_stand_in.end()) {
    const OriginId origin = capture.primal_origins[static_cast<size_t>(*capture.tracer->primal_of(key))];
    const OriginKind kind = capture.origins().at(origin).kind;
    if (!is_a_frames(kind)) {
      capture.guards.add(origin, GuardKind::Is, found->second);
      return found->second;
    }
  } else if (is_guardable_key(key) && tie(capture, key)) {
    return key;
  }
  break_here(capture, "unguardable_key", Py_TYPE(key)->tp_name);
  return nullptr;
}

// Weak references are equal when their objects are: the dict's own one, of an object that the region is tied to. Null:
// none, or no weak reference.
PyObject* own_weak_key(Capture& capture, PyObject* dict, PyObject* asked) {
  PyObject* target = PyWeakref_CheckRefExact(asked) ? cpython::weakref_target(asked) : nullptr;
  const bool known = target && is_guardable_key(target) && !PyTuple_Check(target) && tie(capture, target);
  PyObject *key, *value;
  for (Py_ssize_t at = 0; known && PyDict_Next(dict, &at, &key, &value);)
    if (PyWeakref_CheckRefExact(key) && cpython::weakref_target(key) == target) return key;
  return nullptr;
}

// The hash of a tensor is Python code of torch's: its identity.
PyObject* raw_get(PyObject* dict, PyObject* key) {
  cpython::HookScope nobody(nullptr);
  return PyDict_GetItemWithError(dict, key);
}

Ref outside_dict_get(Capture& capture, Outside* dict, PyObject* asked) {
  if (dict->shadow) return Ref::borrow(PyDict_GetItemWithError(dict->shadow.get(), asked));
  PyObject* key = dict->overlay ? nullptr : own_weak_key(capture, dict->object.get(), asked);
  if (!key) key = stored_key(capture, asked);
  if (!key) return Ref();
  if (dict->overlay) {
    PyObject* written = raw_get(dict->overlay.get(), key);
    if (written) return written == capture.objects.deleted() ? Ref() : Ref::borrow(written);
    if (PyErr_Occurred()) return Ref();
  }
  PyObject* value = raw_get(dict->object.get(), key);
  if (!value) {
    if (!PyErr_Occurred()) capture.guards.add(dict->origin, GuardKind::LacksKey, key);
    return Ref();
  }
  Ref hold = Ref::borrow(value);
  return capture.admit(value, capture.origins().child(dict->origin, OriginKind::DictItem, key));
}

int overlay_set(Capture& capture, Outside* dict, PyObject* asked, PyObject* value) {
  PyObject* key = stored_key(capture, asked);
  if (!key) return -1;
  if (!dict->overlay) dict->overlay = Ref::steal(PyDict_New());
  if (!dict->overlay) return -1;
  capture.objects.mutated(dict);
  PyObject* before = raw_get(dict->overlay.get(), key);
  PyObject* outside = before ? nullptr : raw_get(dict->object.get(), key);
  capture.dropped |= outside && !is_value_constant(outside);
  if (value && before == capture.objects.deleted()) dict->reinserted.push_back(Ref::borrow(key));
  cpython::HookScope nobody(nullptr);
  return PyDict_SetItem(dict->overlay.get(), key, value ? value : capture.objects.deleted());
}

}  // namespace

Ref dict_get(Capture& capture, PyObject* dict, PyObject* key) {
  if (!look_at(capture, key, Look::Compares)) return Ref();
  if (Outside* outside = capture.objects.find(dict)) return outside_dict_get(capture, outside, key);
  return Ref::borrow(PyDict_GetItemWithError(dict, key));
}

int dict_set(Capture& capture, PyObject* dict, PyObject* key, PyObject* value) {
  if (!look_at(capture, key, Look::Compares)) return -1;
  Outside* outside = capture.objects.find(dict);
  if (!outside) return value ? PyDict_SetItem(dict, key, value) : PyDict_DelItem(dict, key);
  if (container_kind(dict) == Kind::OrderedDict && !outside->shadow && !for_c_code(capture, dict)) return -1;
  if (outside->shadow) {
    capture.objects.mutated(outside);
    capture.dropped = true;
    return value ? PyObject_SetItem(outside->shadow.get(), key, value) : PyObject_DelItem(outside->shadow.get(), key);
  }
  if (!value) {
    Ref present = dict_get(capture, dict, key);
    if (!present) {
      if (!PyErr_Occurred()) PyErr_SetObject(PyExc_KeyError, key);
      return -1;
    }
  }
  return overlay_set(capture, outside, key, value);
}

PyObject* instance_dict(Capture& capture, PyObject* object) {
  PyObject* dict = cpython::instance_dict(object);  // materializes an inline one; runs no Python
  if (!dict) {
    PyErr_Clear();
    return nullptr;
  }
  Outside* owner = capture.objects.find(object);
  if (owner) capture.know(dict, capture.origins().child(owner->origin, OriginKind::InstanceDict));
  return dict;
}

Ref sequence_item(Capture& capture, PyObject* sequence, Py_ssize_t index) {
  Outside* outside = capture.objects.find(sequence);
  const bool list = PyList_Check(sequence);
  PyObject* item = list ? PyList_GET_ITEM(sequence, index) : PyTuple_GET_ITEM(sequence, index);
  Ref hold = Ref::borrow(item);
  return capture.admit(
      item, capture.origins().child(outside->origin, list ? OriginKind::ListItem : OriginKind::TupleItem, nullptr,
                                    static_cast<int>(index)));
}

Ref field_get(Capture& capture, Outside* outside, PyObject* descriptor, bool* written) {
  (void)capture;
  for (auto it = outside->fields.rbegin(); it != outside->fields.rend(); ++it)
    if (it->first.get() == descriptor) {
      *written = true;
      return it->second;
    }
  *written = false;
  return Ref();
}

void field_set(Capture& capture, Outside* outside, PyObject* descriptor, PyObject* value) {
  capture.objects.mutated(outside);
  capture.dropped = true;
  for (auto& [known, now] : outside->fields)
    if (known.get() == descriptor) {
      now = Ref::borrow(value);
      return;
    }
  outside->fields.emplace_back(Ref::borrow(descriptor), Ref::borrow(value));
}

}  // namespace graphlift::capture
