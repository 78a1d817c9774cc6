// Owns: turning what was changed on outside objects (shadows, overlays, fields) into effects, and the guards that keep
// changed objects apart. Must not: change anything.
#include <Python.h>

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "capture/deferred.h"
#include "capture/recipe_parts.h"
#include "capture/set_order.h"
#include "capture/snapshot_builder.h"
#include "cpython/raw_dict.h"
#include "cpython/set_table.h"

namespace graphlift::capture {
namespace {

using Builder = SnapshotBuilder;
using guards::OriginId;
using guards::OriginKind;

bool emit(Builder& builder, EffectKind kind, std::vector<int> operands) {
  builder.result.recipe.effects.push_back({kind, std::move(operands)});
  return !builder.failed();
}

int add_container(Builder& builder, NodeKind kind, std::span<PyObject* const> parts) {
  RecipeNode node{kind};
  return builder.nodes_of(parts, &node.children) ? builder.add(std::move(node)) : -1;
}

bool list_effects(Builder& builder, const Outside& outside, int target) {
  PyObject* shadow = outside.shadow.get();
  PyObject** now = reinterpret_cast<PyListObject*>(shadow)->ob_item;
  const size_t count = static_cast<size_t>(PyList_GET_SIZE(shadow));
  const size_t before = static_cast<size_t>(PyTuple_GET_SIZE(outside.baseline.get()));
  PyObject** old = &PyTuple_GET_ITEM(outside.baseline.get(), 0);
  const bool keeps_prefix = before <= count && std::equal(old, old + before, now);
  if (keeps_prefix && before == count) return true;
  if (steers_deferred_calls(builder.capture, outside.object.get())) return builder.fail(outside.object.get()) >= 0;
  const size_t skip = keeps_prefix ? before : 0;
  const int content = add_container(builder, NodeKind::List, {now + skip, count - skip});
  return content >= 0 &&
         emit(builder, keeps_prefix ? EffectKind::ExtendList : EffectKind::ReplaceList, {target, content});
}

bool set_effects(Builder& builder, const Outside& outside, int target) {
  std::vector<PyObject*> now;
  Py_ssize_t position = 0;
  PyObject* item;
  Py_hash_t hash;
  while (cpython::raw_set_next(outside.shadow.get(), &position, &item, &hash)) {
    if (!is_safe_key(item)) return builder.fail(item) >= 0;
    now.push_back(item);
  }
  PyObject** old = &PyTuple_GET_ITEM(outside.baseline.get(), 0);
  const std::unordered_set<PyObject*> before(old, old + PyTuple_GET_SIZE(outside.baseline.get()));
  const bool same = before.size() == now.size() &&
                    std::all_of(now.begin(), now.end(), [&](PyObject* object) { return before.count(object) != 0; });
  if (same) return true;
  if (!guard_order(builder.capture, builder.capture.objects.find(outside.object.get()))) return false;
  Ref copy = cpython::copy_of_set(outside.shadow.get());
  const int content = copy ? builder.node_of(builder.keep(std::move(copy))) : -1;
  return content >= 0 && emit(builder, EffectKind::ReplaceSet, {target, content});
}

bool deque_effects(Builder& builder, const Outside& outside, int target) {
  Ref items = Ref::steal(PySequence_Tuple(outside.shadow.get()));
  if (!items) return builder.fail(outside.object.get()) >= 0;
  PyObject* now = builder.keep(std::move(items));
  PyObject** first = &PyTuple_GET_ITEM(now, 0);
  PyObject** old = &PyTuple_GET_ITEM(outside.baseline.get(), 0);
  const Py_ssize_t count = PyTuple_GET_SIZE(now);
  if (count == PyTuple_GET_SIZE(outside.baseline.get()) && std::equal(old, old + count, first)) return true;
  const int content = add_container(builder, NodeKind::List, {first, static_cast<size_t>(count)});
  return content >= 0 && emit(builder, EffectKind::ReplaceDeque, {target, content});
}

bool emit_key(Builder& builder, int dict, PyObject* key, PyObject* value) {
  if (!is_safe_key(key)) return builder.fail(key) >= 0;
  const int key_node = builder.node_of(key);
  if (!value) return key_node >= 0 && emit(builder, EffectKind::DelKey, {dict, key_node});
  const int value_node = builder.node_of(value);
  return key_node >= 0 && value_node >= 0 && emit(builder, EffectKind::SetKey, {dict, key_node, value_node});
}

// Keys and values alternating, in the dict's own order. False: a key can't be looked up without Python.
bool flat(Builder& builder, PyObject* dict, std::vector<PyObject*>* items) {
  PyObject *key, *value;
  Py_ssize_t position = 0;
  if (!PyODict_Check(dict)) {
    while (PyDict_Next(dict, &position, &key, &value)) items->insert(items->end(), {key, value});
    return true;
  }
  Ref iterator = Ref::steal(PyODict_Type.tp_iter(dict));
  while (Ref next = Ref::steal(iterator ? Py_TYPE(iterator.get())->tp_iternext(iterator.get()) : nullptr)) {
    if (!is_safe_key(next.get())) return builder.fail(next.get()) >= 0;
    items->insert(items->end(), {next.get(), PyDict_GetItemWithError(dict, next.get())});
  }
  return !PyErr_Occurred();
}

bool replace_dict(Builder& builder, int target, PyObject* dict, std::span<PyObject* const> items) {
  for (size_t i = 0; i < items.size(); i += 2)
    if (!is_safe_key(items[i])) return builder.fail(items[i]) >= 0;
  const int content = add_container(builder, NodeKind::Dict, items);
  return content >= 0 && emit(builder, PyODict_Check(dict) ? EffectKind::ReplaceOrderedDict : EffectKind::ReplaceDict,
                              {target, content});
}

// Keys that stay where they were are kept; what was in between is deleted; the rest of the new content is appended.
bool dict_effects(Builder& builder, const Outside& outside, int target) {
  std::vector<PyObject*> now;
  if (!flat(builder, outside.shadow.get(), &now)) return false;
  PyObject** old = &PyTuple_GET_ITEM(outside.baseline.get(), 0);
  const size_t before = static_cast<size_t>(PyTuple_GET_SIZE(outside.baseline.get()));
  std::vector<PyObject*> changes;  // key and new value; null: delete
  size_t at = 0;
  for (size_t i = 0; i < before; i += 2) {
    const bool stays = at < now.size() && now[at] == old[i];
    if (!stays) changes.insert(changes.end(), {old[i], nullptr});
    if (stays && now[at + 1] != old[i + 1]) changes.insert(changes.end(), {now[at], now[at + 1]});
    if (stays) at += 2;
  }
  changes.insert(changes.end(), now.begin() + static_cast<std::ptrdiff_t>(at), now.end());
  if (changes.size() > 2 * now.size() + 8) return replace_dict(builder, target, outside.object.get(), now);
  for (size_t i = 0; i < changes.size(); i += 2)
    if (!emit_key(builder, target, changes[i], changes[i + 1])) return false;
  return true;
}

bool overlay_effects(Builder& builder, const Outside& outside, int target) {
  PyObject *key, *value;
  Py_ssize_t position = 0;
  while (PyDict_Next(outside.overlay.get(), &position, &key, &value)) {
    const bool deleted = value == builder.capture.objects.deleted();
    const bool moved =
        !deleted && std::any_of(outside.reinserted.begin(), outside.reinserted.end(), [&](const Ref& one) {
          return cpython::raw_equal(one.get(), key) == cpython::Answer::Yes;
        });
    if (moved && !emit_key(builder, target, key, nullptr)) return false;
    if (!emit_key(builder, target, key, deleted ? nullptr : value)) return false;
  }
  return true;
}

// The last write to each field counts.
bool field_effects(Builder& builder, const Outside& outside, int target) {
  for (size_t i = 0; i < outside.fields.size(); ++i) {
    const auto& [descriptor, value] = outside.fields[i];
    const bool written_again =
        std::any_of(outside.fields.begin() + static_cast<std::ptrdiff_t>(i) + 1, outside.fields.end(),
                    [&](const auto& later) { return later.first == descriptor; });
    if (written_again) continue;
    int node = -1;
    if (value && (node = builder.node_of(value.get())) < 0) return false;
    const bool done = descriptor
                          ? emit(builder, EffectKind::SetSlot, {target, builder.constant(descriptor.get()), node})
                          : emit(builder, EffectKind::SetCell, {target, node});
    if (!done) return false;
  }
  return true;
}

bool effects_of(Builder& builder, const Outside& outside) {
  PyObject* object = outside.object.get();
  const int target = builder.node_of(object);
  if (target < 0 || !field_effects(builder, outside, target)) return false;
  if (outside.overlay && !overlay_effects(builder, outside, target)) return false;
  if (outside.tail) {
    const auto count = static_cast<size_t>(PyList_GET_SIZE(outside.tail.get()));
    const int tail = add_container(builder, NodeKind::List, {&PyList_GET_ITEM(outside.tail.get(), 0), count});
    return tail >= 0 && emit(builder, EffectKind::ExtendList, {target, tail});
  }
  if (!outside.shadow) return true;
  if (PyList_Check(object)) return list_effects(builder, outside, target);
  if (PyDict_Check(object)) return dict_effects(builder, outside, target);
  if (PySet_Check(object)) return set_effects(builder, outside, target);
  if (PyObject_TypeCheck(object, deque_type())) return deque_effects(builder, outside, target);
  return true;  // nothing changes tuples and frozensets
}

// Gradients of outside leaves that are others than at first.
bool gradient_effects(Builder& builder) {
  for (const auto& [stand_in, before] : builder.capture.gradients) {
    PyObject* now = builder.keep(torch_layer::gradient_of(stand_in));
    if (now == before.get()) continue;
    const int target = builder.node_of(stand_in);
    const int value = target < 0 || !now ? -1 : builder.node_of(now);
    if (value < 0 || !emit(builder, EffectKind::SetGrad, {target, value})) return false;
  }
  return true;
}

bool call_effects(Builder& builder, EffectKind kind, const std::vector<std::pair<Ref, std::vector<Ref>>>& calls) {
  for (const auto& [callable, args] : calls) {
    std::vector<PyObject*> parts{callable.get()};
    for (const Ref& arg : args) parts.push_back(arg.get());
    std::vector<int> operands;
    if (!builder.nodes_of(parts, &operands) || !emit(builder, kind, std::move(operands))) return false;
  }
  return true;
}

std::vector<const Outside*> mutated_in_order(Capture& capture) {
  std::vector<const Outside*> mutated;
  for (const Outside& outside : capture.objects.all())
    if (outside.order != 0) mutated.push_back(&outside);
  std::sort(mutated.begin(), mutated.end(), [](const Outside* a, const Outside* b) { return a->order < b->order; });
  return mutated;
}

// Whether the guards let only this very object through at the origin. `is`: origins with an identity guard.
bool is_pinned(const guards::OriginTable& origins, OriginId origin, const std::unordered_set<OriginId>& is) {
  for (; origin != guards::kNoOrigin; origin = origins.at(origin).parent) {
    if (origins.at(origin).kind == OriginKind::Constant || is.count(origin)) return true;
    const OriginKind kind = origins.at(origin).kind;
    if (kind != OriginKind::InstanceDict && kind != OriginKind::ModuleDict && kind != OriginKind::FunctionDict)
      return false;
  }
  return false;
}

}  // namespace

bool add_effects(SnapshotBuilder& builder) {
  for (const Outside* outside : mutated_in_order(builder.capture))
    if (!effects_of(builder, *outside)) return builder.fail(outside->object.get()) >= 0;
  return gradient_effects(builder) && call_effects(builder, EffectKind::Call, builder.capture.deferred_calls) &&
         call_effects(builder, EffectKind::CallAmbient, builder.capture.ambient_calls);
}

void guard_distinct(Capture& capture) {
  std::unordered_set<OriginId> is;
  for (const auto& entry : capture.guards.entries)
    if (entry.kind == guards::GuardKind::Is) is.insert(entry.where);
  struct Group {
    std::vector<OriginId> changed, others;
    size_t changeable = 0;  // may be another object in a later call
  };
  std::unordered_map<PyTypeObject*, Group> groups;
  for (const Outside* changed : mutated_in_order(capture)) groups[Py_TYPE(changed->object.get())];
  for (PyObject* object : capture.told_apart)
    if (capture.is_outside(object)) groups[Py_TYPE(object)];
  for (const Outside& outside : capture.objects.all()) {
    const auto group = groups.find(Py_TYPE(outside.object.get()));
    if (group == groups.end() || outside.origin == guards::kNoOrigin) continue;
    const bool apart = outside.order || capture.told_apart.count(outside.object.get());
    (apart ? group->second.changed : group->second.others).push_back(outside.origin);
    group->second.changeable += !is_pinned(capture.origins(), outside.origin, is);
  }
  for (auto& [type, group] : groups)
    if (group.changeable) capture.guards.add_distinct_objects(std::move(group.changed), std::move(group.others));
  Group tensors;
  for (const auto& [stand_in, tensor] : capture.tensor_of_stand_in) {
    const std::optional<int> primal = capture.tracer->primal_of(stand_in);
    if (primal)
      (capture.told_apart.count(stand_in) ? tensors.changed : tensors.others)
          .push_back(capture.primal_origins[static_cast<size_t>(*primal)]);
  }
  capture.guards.add_distinct_objects(std::move(tensors.changed), std::move(tensors.others));
}

}  // namespace graphlift::capture
