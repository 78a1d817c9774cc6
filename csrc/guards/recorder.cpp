// Owns: see recorder.h. Order of the proof: a word is read only when words before it showed that its owner is alive and
// laid out as before.
#include "guards/recorder.h"

#include <algorithm>

#include "cpython/dict_version.h"
#include "cpython/raw_dict.h"

namespace graphlift::guards {

namespace {

bool is_static(PyTypeObject* type) { return !PyType_HasFeature(type, Py_TPFLAGS_HEAPTYPE); }

// These slots of an object hold a dict or nothing: what stands there has a dict's layout, whatever its class.
bool always_a_dict(OriginKind kind) {
  return kind == OriginKind::InstanceDict || kind == OriginKind::TensorDict || kind == OriginKind::FunctionDict ||
         kind == OriginKind::ModuleDict;
}

// Where a function holds a part that programs may replace; null: another kind of part.
PyObject** part_of_function(OriginKind kind, PyObject* owner) {
  auto* function = reinterpret_cast<PyFunctionObject*>(owner);
  switch (kind) {
    case OriginKind::Code:
      return &function->func_code;
    case OriginKind::Defaults:
      return &function->func_defaults;
    case OriginKind::KwDefaults:
      return &function->func_kwdefaults;
    case OriginKind::FunctionDict:
      return &function->func_dict;
    default:
      return nullptr;
  }
}

}  // namespace

Recorder::Recorder(const Plan& plan, Memo* memo) : plan_(plan), memo_(*memo), known_(plan.nodes.size()) {
  memo_.actions_.clear();
  memo_.words_.clear();
  memo_.type_tags_.clear();
  memo_.leaves_.clear();
  memo_.pairs_.clear();
  memo_.distinct_.clear();
}

void Recorder::record() {
  for (int32_t i = 0; i < static_cast<int32_t>(plan_.nodes.size());) {
    const Node& node = plan_.nodes[static_cast<size_t>(i)];
    memo_.history_[static_cast<size_t>(i)].contents = 0;
    if (memo_.slots_[static_cast<size_t>(i)]) {
      visit(i++);
      continue;
    }
    if (!absence_is_proven(node)) action(Memo::Op::Missing, i);
    i = node.end;
  }
  add_pairs();
}

void Recorder::visit(int32_t i) {
  const Node& node = plan_.nodes[static_cast<size_t>(i)];
  PyObject* object = memo_.slots_[static_cast<size_t>(i)];
  Known& known = known_[static_cast<size_t>(i)];
  known.state = enter(i);
  if (known.state != State::Varying) {
    prove_type(i);
    prove_contents(i);
  }
  for (int32_t c = node.check_begin; c < node.check_end; ++c) {
    const Check& check = plan_.checks[static_cast<size_t>(c)];
    const bool plainly = known.state == State::Varying || !is_proven(check, known, object);
    if (plainly && applies(check.kind) == Applies::Object) action(Memo::Op::Check, c);
  }
  for (int32_t leaf = node.leaf_begin; leaf < node.leaf_end; ++leaf)
    memo_.leaves_.push_back({plan_.leaves[static_cast<size_t>(leaf)].check.get(), i, leaf});
}

bool Recorder::absence_is_proven(const Node& node) {
  const Known* parent = parent_of(node);
  if (!parent) return false;
  if (node.step.kind == OriginKind::DictItem || node.step.kind == OriginKind::TypeAttr) return parent->contents;
  PyObject* owner = memo_.slots_[static_cast<size_t>(node.parent)];
  if (!parent->layout || !owner || !PyFunction_Check(owner)) return false;
  PyObject** place = part_of_function(node.step.kind, owner);
  if (!place || *place) return false;
  word(place, nullptr);
  return true;
}

Recorder::State Recorder::enter(int32_t i) {
  const Node& node = plan_.nodes[static_cast<size_t>(i)];
  PyObject* object = memo_.slots_[static_cast<size_t>(i)];
  if (!memo_.history_[static_cast<size_t>(i)].varies && node.owned < 0) {
    const State state = enter_by_words(node, object);
    if (state != State::Varying) return state;
  }
  return fetch_again(i);
}

// Varying: no words can do it.
Recorder::State Recorder::enter_by_words(const Node& node, PyObject* object) {
  if (node.step.kind == OriginKind::Constant) {
    const Handle& constant = node.details->constant;
    if (constant.live()) word(constant.live(), constant.address());
    return State::Pinned;
  }
  const Known* parent = parent_of(node);
  if (!parent || parent->state == State::Varying) return State::Varying;
  PyObject* owner = memo_.slots_[static_cast<size_t>(node.parent)];
  switch (node.step.kind) {
    case OriginKind::DictItem:
    case OriginKind::TypeAttr:
      return parent->contents ? State::Pinned : State::Varying;
    case OriginKind::TupleItem:
    case OriginKind::Closure:
    case OriginKind::FunctionGlobals:
    case OriginKind::ModuleDict:
      return parent->state == State::Pinned ? State::Pinned : State::Varying;
    case OriginKind::Cell:
      if (!parent->layout) return State::Varying;
      word(&reinterpret_cast<PyCellObject*>(owner)->ob_ref, object);
      return State::Same;
    case OriginKind::Code:
    case OriginKind::Defaults:
    case OriginKind::KwDefaults:
    case OriginKind::FunctionDict: {
      PyObject** place = part_of_function(node.step.kind, owner);
      if (!parent->layout || !PyFunction_Check(owner) || *place != object) return State::Varying;
      word(place, object);
      return State::Same;
    }
    case OriginKind::InstanceDict:
    case OriginKind::TensorDict:
      return parent->layout ? enter_instance_dict(node, object) : State::Varying;
    default:
      return State::Varying;
  }
}

Recorder::State Recorder::enter_instance_dict(const Node& node, PyObject* object) {
  PyObject* owner = memo_.slots_[static_cast<size_t>(node.parent)];
  if (Py_TYPE(owner)->tp_itemsize != 0) return State::Varying;  // the place would depend on the object's size
  PyObject** place = cpython::instance_dict_address(owner);
  if (!place || *place != object) return State::Varying;
  word(place, object);
  return State::Same;
}

// The object is fetched again. It pays to compare it only when something hangs on it.
Recorder::State Recorder::fetch_again(int32_t i) {
  const Node& node = plan_.nodes[static_cast<size_t>(i)];
  const bool worthwhile = node.end > i + 1 && node.owned < 0 && !memo_.history_[static_cast<size_t>(i)].varies;
  action(worthwhile ? Memo::Op::FetchSame : Memo::Op::Fetch, i);
  return worthwhile ? State::Same : State::Varying;
}

void Recorder::prove_type(int32_t i) {
  const Node& node = plan_.nodes[static_cast<size_t>(i)];
  PyObject* object = memo_.slots_[static_cast<size_t>(i)];
  Known& known = known_[static_cast<size_t>(i)];
  PyTypeObject* type = Py_TYPE(object);
  const auto first = plan_.checks.begin() + node.check_begin, last = plan_.checks.begin() + node.check_end;
  const auto guard = std::find_if(first, last, [](const Check& check) { return check.kind == GuardKind::TypeIs; });
  const bool pinned = known.state == State::Pinned;
  // Assigning __class__ keeps the layout; it is allowed between heap types and for modules.
  known.layout = pinned || (always_a_dict(node.step.kind) && PyDict_Check(object));
  known.type = pinned && is_static(type) && !PyModule_Check(object);
  if (known.type || (guard == last && (known.layout || !is_static(type)))) return;
  if (node.end == i + 1 && node.check_begin == node.check_end) return;
  word(&object->ob_type, type);
  if (guard != last) alive(guard->identity);
  known.layout = known.type = true;
}

bool Recorder::asks_contents(const Node& node, int32_t i) const {
  for (int32_t c = node.check_begin; c < node.check_end; ++c) {
    const GuardKind kind = plan_.checks[static_cast<size_t>(c)].kind;
    if (kind == GuardKind::HasKey || kind == GuardKind::LacksKey || kind == GuardKind::KeysAre ||
        kind == GuardKind::Length || kind == GuardKind::TypeVersion)
      return true;
  }
  for (int32_t child = i + 1; child < node.end; child = plan_.nodes[static_cast<size_t>(child)].end) {
    const OriginKind kind = plan_.nodes[static_cast<size_t>(child)].step.kind;
    if (kind == OriginKind::DictItem || kind == OriginKind::TypeAttr) return true;
  }
  return false;
}

void Recorder::prove_contents(int32_t i) {
  const Node& node = plan_.nodes[static_cast<size_t>(i)];
  PyObject* object = memo_.slots_[static_cast<size_t>(i)];
  Known& known = known_[static_cast<size_t>(i)];
  Memo::History& history = memo_.history_[static_cast<size_t>(i)];
  if (!known.layout || history.contents_vary || !asks_contents(node, i)) return;
  if (PyDict_Check(object)) {
    const uint64_t* tag = cpython::dict_version_address(object);
    if (!tag) return;
    history.contents = *tag;
    word(tag, *tag);
    known.contents = true;
  } else if (PyType_Check(object)) {
    PyTypeObject* type = reinterpret_cast<PyTypeObject*>(object);
    const unsigned tag = cpython::type_version(type);
    if (tag == 0) return;
    history.contents = tag;
    action(Memo::Op::TypeTag, static_cast<int32_t>(memo_.type_tags_.size()));
    memo_.type_tags_.push_back({cpython::type_version_address(type), tag});
    known.contents = true;
  }
}

// Precondition: the object is pinned or same, and passed the check.
bool Recorder::is_proven(const Check& check, const Known& known, PyObject* object) {
  const bool pinned = known.state == State::Pinned;
  switch (check.kind) {
    case GuardKind::TypeIs:
      return known.type;
    case GuardKind::Is:
      if (!pinned && check.identity.live()) word(check.identity.live(), check.identity.address());
      return true;
    case GuardKind::IsNot:
      return true;
    case GuardKind::Equals:
      return pinned || object == check.constant.get();
    case GuardKind::Length:
      return known.contents || (pinned && PyTuple_Check(object));
    case GuardKind::HasKey:
    case GuardKind::LacksKey:
      return known.contents;
    case GuardKind::KeysAre:
      return known.contents && !PyODict_Check(object);
    case GuardKind::SetIs:
      return pinned && PyFrozenSet_CheckExact(object);
    case GuardKind::CellEmpty:
      if (!known.layout) return false;
      word(&reinterpret_cast<PyCellObject*>(object)->ob_ref, nullptr);
      return true;
    case GuardKind::TypeVersion:
      return known.contents;
    default:
      return false;
  }
}

void Recorder::add_pairs() {
  auto varies = [&](int32_t node) { return known_[static_cast<size_t>(node)].state == State::Varying; };
  for (size_t i = 0; i < plan_.pairs.size(); ++i)
    if (varies(plan_.pairs[i].left) || varies(plan_.pairs[i].right)) memo_.pairs_.push_back(static_cast<int32_t>(i));
  for (size_t i = 0; i < plan_.distinct_objects.size(); ++i) {
    const std::vector<int32_t>& nodes = plan_.distinct_objects[i].keys();
    if (std::any_of(nodes.begin(), nodes.end(), varies)) memo_.distinct_.push_back(static_cast<int32_t>(i));
  }
}

void Recorder::word(const void* address, uint64_t value) {
  memo_.words_.push_back({address, value});
  const int32_t count = static_cast<int32_t>(memo_.words_.size());
  if (!memo_.actions_.empty() && memo_.actions_.back().op == Memo::Op::Words) {
    memo_.actions_.back().last = count;
  } else {
    action(Memo::Op::Words, count - 1, count);
  }
}

void Recorder::alive(const Handle& handle) {
  if (!handle.live()) return;
  if (std::find(proven_alive_.begin(), proven_alive_.end(), handle.live()) != proven_alive_.end()) return;
  proven_alive_.push_back(handle.live());
  word(handle.live(), handle.address());
}

}  // namespace graphlift::guards
