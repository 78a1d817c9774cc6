// Owns: see memo.h: running the shortcut, and learning what varies. recorder.cpp makes it.
#include "guards/memo.h"

#include <cstring>

#include "cpython/dict_version.h"
#include "guards/recorder.h"

namespace graphlift::guards {

namespace {

// Two changes within this many checks: it varies.
constexpr uint32_t kWindow = 16;
// Tag of a dict's or a type's contents; 0: it has none.
uint64_t contents_tag(PyObject* object) {
  if (PyDict_Check(object)) {
    const uint64_t* address = cpython::dict_version_address(object);
    return address ? *address : 0;
  }
  return PyType_Check(object) ? cpython::type_version(reinterpret_cast<PyTypeObject*>(object)) : 0;
}

void note_change(uint32_t clock, uint32_t* last, bool* varies) {
  if (*last != 0 && clock - *last <= kWindow) *varies = true;
  *last = clock;
}

}  // namespace

Memo::Memo(const Plan& plan) : slots_(plan.nodes.size(), nullptr), history_(plan.nodes.size()) {}

bool Memo::words_hold(const Action& action) const {
  const Word* const last = words_.data() + action.last;
  for (const Word* word = words_.data() + action.first; word != last; ++word) {
    uint64_t now;  // a pointer or a version tag
    std::memcpy(&now, word->address, sizeof now);
    if (now != word->value) return false;
  }
  return true;
}

Outcome Memo::run_actions(const Plan& plan, const Roots& roots, Ref* owned, Failure* failure) {
  for (const Action& action : actions_) {
    if (action.op == Op::Words) {
      if (!words_hold(action)) return Outcome::Miss;
      continue;
    }
    if (action.op == Op::TypeTag) {
      const TypeTag& tag = type_tags_[static_cast<size_t>(action.first)];
      if (*tag.address != tag.value) return Outcome::Miss;
      continue;
    }
    if (action.op == Op::Check) {
      const Check& check = plan.checks[static_cast<size_t>(action.first)];
      if (check.run(check, slots_[static_cast<size_t>(check.node)])) continue;
      *failure = {Failure::Part::Check, action.first};
      return Outcome::Fail;
    }
    const Node& node = plan.nodes[static_cast<size_t>(action.first)];
    PyObject* parent = node.parent < 0 ? nullptr : slots_[static_cast<size_t>(node.parent)];
    PyObject*& slot = slots_[static_cast<size_t>(action.first)];
    PyObject* object = fetch_node(node, roots, parent, owned);
    if (action.op == Op::Missing) {
      if (object || !really_missing(node, parent)) return Outcome::Miss;
    } else if (action.op == Op::FetchSame) {
      if (object != slot) return node.parent < 0 ? Outcome::OtherRoot : Outcome::Miss;
    } else {
      if (!object) return Outcome::Miss;
      slot = object;
    }
  }
  return Outcome::Hit;
}

// What is looked at soon is asked for ahead: parameters lie all over the heap.
bool Memo::leaves_hold(int64_t* symbols, Failure* failure) const {
  constexpr size_t kAhead = 8;
  for (size_t k = 0; k < leaves_.size(); ++k) {
    if (k + kAhead < leaves_.size()) {
      const LeafAt& later = leaves_[k + kAhead];
      __builtin_prefetch(slots_[static_cast<size_t>(later.node)]);
      __builtin_prefetch(later.check);
    }
    const LeafAt& leaf = leaves_[k];
    if (leaf.check->check(slots_[static_cast<size_t>(leaf.node)], symbols)) continue;
    *failure = {Failure::Part::Leaf, leaf.index};
    return false;
  }
  return true;
}

Outcome Memo::run(const Plan& plan, const Roots& roots, int64_t* symbols, Ref* owned, Failure* failure) {
  if (!ready_) return Outcome::Miss;
  ++clock_;
  const Outcome outcome = run_actions(plan, roots, owned, failure);
  if (outcome != Outcome::Hit) return outcome;
  if (!leaves_hold(symbols, failure)) return Outcome::Fail;
  for (int32_t i : pairs_) {
    if (run_pair(plan.pairs[static_cast<size_t>(i)], slots_.data())) continue;
    *failure = {Failure::Part::Pair, i};
    return Outcome::Fail;
  }
  for (int32_t i : distinct_) {
    if (run_distinct(plan.distinct_objects[static_cast<size_t>(i)], slots_.data())) continue;
    *failure = {Failure::Part::DistinctObjects, i};
    return Outcome::Fail;
  }
  return Outcome::Hit;
}

void Memo::note_changes(const Plan& plan, const std::vector<PyObject*>& walked) {
  for (size_t i = 0; i < plan.nodes.size(); ++i) {
    History& history = history_[i];
    if (walked[i] != slots_[i]) {
      note_change(clock_, &history.object_changed, &history.varies);
    } else if (history.contents != 0 && contents_tag(walked[i]) != history.contents) {
      note_change(clock_, &history.contents_changed, &history.contents_vary);
    }
  }
}

void Memo::record(const Plan& plan, std::vector<PyObject*>* walked, bool learn) {
  if (ready_ && learn) note_changes(plan, *walked);
  slots_.swap(*walked);
  Recorder(plan, this).record();
  ready_ = true;
}

void Memo::learn_from(const Memo& other) {
  for (size_t i = 0; i < history_.size(); ++i) {
    history_[i].varies = other.history_[i].varies;
    history_[i].contents_vary = other.history_[i].contents_vary;
  }
}

}  // namespace graphlift::guards
