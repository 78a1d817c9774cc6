// Owns: the state of one snapshot: the node of every object met so far, and late parts that still have to be looked at.
// Private to snapshot*.cpp. Must not: know frames.
#pragma once

#include <deque>
#include <span>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "capture/snapshot.h"

namespace graphlift::capture {

class SnapshotBuilder;

// How fresh objects of one kind are made again. `early` adds the node and returns it; `late` completes it when every
// early part of what was met before exists. Both return -1 / false after SnapshotBuilder::fail.
struct FreshRule {
  const char* kind;
  bool (*matches)(PyObject* object, PyTypeObject* base);  // base: c_base of its type
  int (*early)(SnapshotBuilder& builder, PyObject* object);
  bool (*late)(SnapshotBuilder& builder, PyObject* object, int node);  // null: no late parts
};

std::span<const FreshRule> container_rules();  // snapshot_containers.cpp
std::span<const FreshRule> object_rules();     // snapshot_objects.cpp
std::span<const FreshRule> callable_rules();   // snapshot_callables.cpp
std::span<const FreshRule> reduce_rules();     // snapshot_reduce.cpp

class SnapshotBuilder {
 public:
  SnapshotBuilder(Capture& capture, SnapshotResult* result);

  // The node of an object; equal objects by identity have one node. -1: it can't be rebuilt.
  int node_of(PyObject* object);
  // The same for what a weak reference refers to: something else has to keep it.
  int weak_node_of(PyObject* object, PyObject* reference);
  bool nodes_of(std::span<PyObject* const> objects, std::vector<int>* out);
  int constant(PyObject* object);
  int fetched(guards::OriginId origin);
  int add(RecipeNode node);
  void name(PyObject* object, int node) { nodes_[object] = node; }  // the node of an object that was not met yet
  // Completes late parts until none is left.
  bool finish();
  int fail(PyObject* culprit);  // the first one stays
  bool failed() const { return !result.unrebuildable.empty(); }
  // Keeps a temporary alive, so that its address stays a key.
  PyObject* keep(Ref object);
  RecipeNode& at(int node) { return result.recipe.nodes[static_cast<size_t>(node)]; }

  Capture& capture;
  SnapshotResult& result;
  std::unordered_map<int, PyObject*> call_states;  // by Call node: what its __setstate__ is to get; kept alive

 private:
  struct Late {
    const FreshRule* rule;
    PyObject* object;
    int node;
  };
  int make(PyObject* object);
  int make_tensor(PyObject* tensor);
  int make_array(PyObject* tensor);
  int make_symbol(PyObject* scalar);
  int make_fresh(PyObject* object);

  std::unordered_map<PyObject*, int> nodes_;
  std::unordered_set<PyObject*> kept_;             // objects that something else than a weak reference refers to
  std::unordered_map<PyObject*, PyObject*> weak_;  // what weak references refer to, and one of those
  std::unordered_map<guards::OriginId, int> fetch_index_;
  std::deque<Late> late_;
  int depth_ = 0;
};

// Adds the object's slots and instance dict to the node's state.
bool add_attributes(SnapshotBuilder& builder, PyObject* object, int node);
// True when hash and equality of the key, as a recipe runs them, are C code or known to be harmless.
bool is_safe_key(PyObject* key);
// C values without identity semantics that nothing can change.
bool is_frozen_value(PyObject* object);
bool is_enum_member(PyObject* object);

// Effects of every change on outside objects, in program order; then ambient and deferred calls.
bool add_effects(SnapshotBuilder& builder);
void guard_distinct(Capture& capture);

}  // namespace graphlift::capture
