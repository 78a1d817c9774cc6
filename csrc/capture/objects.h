// Owns: the identity table of one capture: which objects existed before it, where they were found, and what was changed
// on them since (overlays and shadows). An object that is not in the table and is no stand-in is fresh or an immutable
// constant. Must not: change an outside object, or decide what may be read (attributes.cpp, items.cpp do).
#pragma once

#include <deque>
#include <unordered_map>
#include <vector>

#include "base/ref.h"
#include "guards/origin.h"

namespace graphlift::capture {

struct Outside {
  Ref object;
  guards::OriginId origin = guards::kNoOrigin;
  // A fresh container with the same content as capture sees it (stand-ins for tensors). Once made, every access goes to
  // it. Lists, sets, deques, tuples and whole dicts.
  Ref shadow;
  Ref baseline;  // tuple of the shadow's items (dict: keys and values alternating) when it was made
  // Dicts without a shadow: keys written (value) or deleted (value is `deleted()`) so far, in order.
  Ref overlay;
  std::vector<Ref> reinserted;  // keys deleted first and written again: they move to the end
  Ref tail;                     // lists without a shadow: what was appended so far
  // Slots and cells written: (descriptor or null for a cell's content, new value; null value: deleted).
  std::vector<std::pair<Ref, Ref>> fields;
  bool order_guarded = false;  // sets: see set_order.h
  size_t order = 0;            // of first mutation, for replay; 0: never mutated
};

class Objects {
 public:
  Outside* find(PyObject* object);       // by the outside object itself
  Outside* of_shadow(PyObject* shadow);  // by its shadow
  Outside* add(PyObject* object, guards::OriginId origin);
  void set_shadow(Outside* outside, Ref shadow, Ref baseline);
  void mutated(Outside* outside);                       // gives it its place in the replay order
  size_t changes() const { return changes_; }           // made to outside objects so far
  PyObject* deleted() const { return deleted_.get(); }  // the marker of a deleted key
  std::deque<Outside>& all() { return all_; }
  Objects();

 private:
  std::deque<Outside> all_;  // addresses are stable
  std::unordered_map<PyObject*, Outside*> by_object_;
  std::unordered_map<PyObject*, Outside*> by_shadow_;
  Ref deleted_;
  size_t mutations_ = 0;
  size_t changes_ = 0;
};

}  // namespace graphlift::capture
