// Random object graphs, random guards that hold on them, random changes: the tree answers as a naive check does, guard
// by guard through the slow fetch. Seeds are fixed; a failure names its seed.
#include <random>

#include "guards/constant.h"
#include "guards/scene.h"

namespace graphlift::guards {

namespace {

constexpr const char* kFuzzSource = R"(
import copy, random, types
class Base: pass
class Node(Base):
    shared = 1
class Other(Base):
    shared = 1
class Slotted:
    __slots__ = ('left', 'right')
def cell(value):
    def inner(): return value
    return inner
CONSTANTS = [0, 1, True, 1.0, -0.0, 0.0, 'a', 'b', b'a', None, (1, 'a'), (1.0, 'a'), 10**20]
KEYS = ['x', 'y', 'z', 1, (1, 2)]
pool = []
def value(depth):
    kind = R.randrange(10 if depth else 2)
    if kind == 0: return R.choice(CONSTANTS)
    if kind == 1 and pool: return R.choice(pool)
    made = make(kind, depth - 1 if depth else 0)
    pool.append(made)
    return made
def make(kind, depth):
    some = [value(depth) for _ in range(R.randrange(4))] if depth else []
    if kind in (2, 3, 4):
        node = R.choice((Node, Other))()
        for key, item in zip(('x', 'y', 'z'), some): setattr(node, key, item)
        return node
    if kind == 5: return some
    if kind == 6: return tuple(some)
    if kind == 7: return dict(zip(KEYS, some))
    if kind == 8:
        slots = Slotted()
        if some: slots.left = some[0]
        return slots
    return cell(some)
def start(seed):
    global R, top, twin
    R = random.Random(seed)
    pool.clear()
    top = [value(4) for _ in range(3)]
    twin = copy.deepcopy(top)
def change():
    global top, twin
    if R.randrange(3) == 0: top, twin = twin, top
    if R.randrange(50) == 0: twin = copy.deepcopy(top)
    if R.randrange(2) == 0: return
    if len(pool) > 3 and R.randrange(3) == 0: del pool[R.randrange(len(pool))]  # what nothing else holds dies, its place is free
    target = R.choice(pool + [Node, Other, top]) if pool else top
    fresh = R.choice(CONSTANTS + pool)
    if R.randrange(4) == 0: fresh = make(R.randrange(2, 9), 1)
    if target is top: top[R.randrange(3)] = fresh
    elif isinstance(target, type):
        if R.randrange(2): target.shared = R.choice((1, 2))
        else: target.extra = fresh
    elif isinstance(target, list):
        what = R.randrange(3)
        if what == 0 or not target: target.append(fresh)
        elif what == 1: target[R.randrange(len(target))] = fresh
        else: target.pop()
    elif isinstance(target, dict): mapping(target, KEYS, fresh)
    elif isinstance(target, Base):
        what = R.randrange(5)
        if what == 0: target.__class__ = R.choice((Node, Other))
        elif what == 1: target.__dict__ = dict(target.__dict__)
        else: mapping(target.__dict__, ['x', 'y', 'z'], fresh)
    elif isinstance(target, Slotted):
        if R.randrange(3): target.left = fresh
        elif hasattr(target, 'left'): del target.left
    elif isinstance(target, types.FunctionType): target.__closure__[0].cell_contents = fresh
def mapping(d, keys, fresh):
    key = R.choice(keys)
    what = R.randrange(5)
    if what == 0: d.pop(key, None)
    elif what == 1 and key in d: d[key] = d.pop(key)
    elif what == 2: d.update(d)
    else: d[key] = fresh
)";

// Chooses guards that hold on what it finds below a root, and the steps that the root's object allows.
class Chooser {
 public:
  // `identity`: whether objects are guarded by identity too; without, guards hold on copies.
  Chooser(GuardSet* guards, std::vector<OriginId>* fetches, std::mt19937* random, bool identity)
      : guards_(*guards), fetches_(*fetches), random_(*random), identity_(identity) {}

  void explore(OriginId where, PyObject* object, int depth) {
    known_.emplace_back(where, object);
    guard(where, object);
    if (below(4) == 0) fetches_.push_back(where);
    if (depth == 0) return;
    if (PyDict_Check(object))
      dict(where, object, depth);
    else if (PyList_CheckExact(object))
      items(where, object, OriginKind::ListItem, depth);
    else if (PyTuple_CheckExact(object))
      items(where, object, OriginKind::TupleItem, depth);
    else if (PyFunction_Check(object))
      step(where, object, OriginKind::Closure, nullptr, depth);
    else if (PyCell_Check(object))
      step(where, object, OriginKind::Cell, nullptr, depth);
    else if (Py_TYPE(object)->tp_flags & Py_TPFLAGS_HEAPTYPE)
      instance(where, object, depth);
  }

  void relate() {
    for (int i = 0; i < 3 && known_.size() > 1; ++i) {
      const auto& [a, left] = known_[below(known_.size())];
      const auto& [b, right] = known_[below(known_.size())];
      guards_.add(a, left == right ? GuardKind::SameAs : GuardKind::NotSameAs, nullptr, b);
    }
  }

 private:
  size_t below(size_t count) { return random_() % count; }

  void step(OriginId where, PyObject* object, OriginKind kind, PyObject* key, int depth, int index = 0) {
    const OriginId id = guards_.origins().child(where, kind, key, index);
    roots_holder_ = object;
    Roots roots;
    roots.locals = &roots_holder_;
    OriginTable one;
    const OriginId there = one.child(one.root(OriginKind::Local), kind, key, index);
    Ref found = one.fetch(there, roots);
    if (found)
      explore(id, found.get(), depth - 1);
    else if (below(2))
      missing(where, id, object);
  }

  // A part can only be called missing in an object that could have it.
  void missing(OriginId where, OriginId part, PyObject* object) {
    guards_.add(where, GuardKind::TypeIs, reinterpret_cast<PyObject*>(Py_TYPE(object)));
    guards_.add(part, GuardKind::Missing);
  }

  void guard(OriginId where, PyObject* object) {
    auto type = reinterpret_cast<PyObject*>(Py_TYPE(object));
    if (below(4)) guards_.add(where, GuardKind::TypeIs, type);
    if (is_guardable_constant(object) && below(3)) guards_.add(where, GuardKind::Equals, object);
    if (identity_ && !below(6)) guards_.add(where, GuardKind::Is, object);
    if (!below(8)) guards_.add(where, GuardKind::IsNot, type);
    if (PyCell_Check(object) && !PyCell_GET(object)) guards_.add(where, GuardKind::CellEmpty);
    if ((PyList_Check(object) || PyTuple_Check(object) || PyDict_Check(object)) && below(2))
      guards_.add(where, GuardKind::Length, nullptr, PyObject_Size(object));
  }

  void dict(OriginId where, PyObject* object, int depth) {
    Ref keys = Ref::steal(PySequence_Tuple(object));
    if (!below(3)) guards_.add(where, GuardKind::KeysAre, keys.get());
    for (const char* name : {"x", "y", "z"}) {
      Ref key = text_object(name);
      if (!below(3))
        guards_.add(where, PyDict_Contains(object, key.get()) ? GuardKind::HasKey : GuardKind::LacksKey, key.get());
    }
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(keys.get()); ++i)
      if (below(4)) step(where, object, OriginKind::DictItem, PyTuple_GET_ITEM(keys.get(), i), depth);
    if (below(2)) step(where, object, OriginKind::DictItem, text_object("z").get(), depth);
  }

  void items(OriginId where, PyObject* object, OriginKind kind, int depth) {
    for (Py_ssize_t i = 0; i <= PyObject_Size(object); ++i)
      if (below(3)) step(where, object, kind, nullptr, depth, static_cast<int>(i));
  }

  void instance(OriginId where, PyObject* object, int depth) {
    Ref left = Ref::steal(PyObject_GetAttrString(reinterpret_cast<PyObject*>(Py_TYPE(object)), "left"));
    PyErr_Clear();
    if (left)
      step(where, object, OriginKind::Slot, left.get(), depth);
    else
      step(where, object, OriginKind::InstanceDict, nullptr, depth);
    if (below(3)) return;
    const OriginId type = guards_.origins().child(where, OriginKind::TypeOf);
    PyObject* shared = PyDict_Check(object) ? nullptr : reinterpret_cast<PyObject*>(Py_TYPE(object));
    if (shared) step(type, shared, OriginKind::TypeAttr, text_object(below(2) ? "shared" : "extra").get(), 1);
  }

  GuardSet& guards_;
  std::vector<OriginId>& fetches_;
  std::mt19937& random_;
  bool identity_;
  std::vector<std::pair<OriginId, PyObject*>> known_;
  PyObject* roots_holder_ = nullptr;
};

// What a guard means, written a second time: through Python's own API.
bool naive_holds(const GuardSet& guards, const GuardSet::Entry& entry, const Roots& roots) {
  Ref object = guards.origins().fetch(entry.where, roots);
  PyObject* operand = entry.operand.get();
  if (entry.kind == GuardKind::Missing) return !object;
  if (!object) return false;
  const bool is_dict = PyDict_Check(object.get());
  switch (entry.kind) {
    case GuardKind::TypeIs:
      return reinterpret_cast<PyObject*>(Py_TYPE(object.get())) == operand;
    case GuardKind::Is:
      return object.get() == operand;
    case GuardKind::IsNot:
      return object.get() != operand;
    case GuardKind::Equals: {
      if (Py_TYPE(object.get()) != Py_TYPE(operand)) return false;
      Ref a = Ref::steal(PyObject_Repr(object.get())), b = Ref::steal(PyObject_Repr(operand));
      return PyObject_RichCompareBool(a.get(), b.get(), Py_EQ) == 1;
    }
    case GuardKind::Length: {
      const Py_ssize_t size = PyObject_Size(object.get());
      PyErr_Clear();
      return size == entry.number && !PyUnicode_Check(object.get()) && !PyBytes_Check(object.get());
    }
    case GuardKind::HasKey:
      return is_dict && PyDict_Contains(object.get(), operand) == 1;
    case GuardKind::LacksKey:
      return is_dict && PyDict_Contains(object.get(), operand) == 0;
    case GuardKind::KeysAre: {
      Ref keys = is_dict ? Ref::steal(PySequence_Tuple(object.get())) : Ref();
      return keys && PyObject_RichCompareBool(keys.get(), operand, Py_EQ) == 1;
    }
    case GuardKind::SameAs:
    case GuardKind::NotSameAs: {
      Ref other = guards.origins().fetch(static_cast<OriginId>(entry.number), roots);
      return other && (other.get() == object.get()) == (entry.kind == GuardKind::SameAs);
    }
    case GuardKind::CellEmpty:
      return PyCell_Check(object.get()) && !PyCell_GET(object.get());
    default:
      ADD_FAILURE() << "no naive form";
      return false;
  }
}

bool naive(const GuardSet& guards, const std::vector<OriginId>& fetches, const Roots& roots) {
  for (const auto& entry : guards.entries)
    if (!naive_holds(guards, entry, roots)) return false;
  for (OriginId id : fetches)
    if (!guards.origins().fetch(id, roots)) return false;
  return true;
}

GuardSet copy_of(const GuardSet& guards) {
  GuardSet copy;
  copy.origins() = guards.origins();
  for (const auto& entry : guards.entries) copy.add(entry.where, entry.kind, entry.operand.get(), entry.number);
  return copy;
}

struct Tally {
  int held = 0, failed = 0;
};

// Three objects of the scene, guards that hold on them as they are, and the tree of those.
class Trial {
 public:
  Trial(Scene* scene, std::mt19937* random) : scene_(*scene) {
    const Roots now = roots();
    Chooser chooser(&guards_, &fetches_, random, (*random)() % 2 == 0);
    for (int i = 0; i < 3; ++i) chooser.explore(guards_.origins().root(OriginKind::Local, i), now.locals[i], 6);
    chooser.relate();
    tree_ = std::make_unique<Checked>(copy_of(guards_), fetches_);
  }

  // What both say.
  bool agree(int times) {
    const Roots now = roots();
    const bool expected = naive(guards_, fetches_, now);
    for (int i = 0; i < times; ++i) EXPECT_EQ(tree_->once(now), expected) << tree_->tree().explain(now);
    EXPECT_EQ(tree_->tree().explain(now).empty(), expected);
    for (size_t i = 0; expected && i < fetches_.size() && !testing::Test::HasFailure(); ++i)
      EXPECT_EQ(tree_->fetched()[i].get(), guards_.origins().fetch(fetches_[i], now).get());
    return expected;
  }

 private:
  Roots roots() {
    for (Py_ssize_t i = 0; i < 3; ++i) locals_[i] = PyList_GET_ITEM(scene_.at("top"), i);
    Roots now;
    now.locals = locals_;
    return now;
  }

  Scene& scene_;
  GuardSet guards_;
  std::vector<OriginId> fetches_;
  PyObject* locals_[3] = {};
  std::unique_ptr<Checked> tree_;
};

void run_seed(Scene& scene, unsigned seed, Tally* tally) {
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  scene.run("start(" + std::to_string(seed) + ")");
  auto trial = std::make_unique<Trial>(&scene, &random);
  ASSERT_TRUE(trial->agree(2));
  for (int round = 0; round < 60 && !testing::Test::HasFailure(); ++round) {
    if (random() % 3) scene.run("change()");
    const bool held = trial->agree(1 + static_cast<int>(random() % 3));
    ++(held ? tally->held : tally->failed);
    if (!held && random() % 2) trial = std::make_unique<Trial>(&scene, &random);
  }
}

TEST(Fuzz, TheTreeAnswersAsANaiveCheck) {
  Scene scene(kFuzzSource);
  const char* count = std::getenv("GRAPHLIFT_FUZZ_SEEDS");
  const unsigned seeds = count ? static_cast<unsigned>(std::atoi(count)) : 300;
  Tally tally;
  for (unsigned seed = 0; seed < seeds && !HasFailure(); ++seed) run_seed(scene, seed, &tally);
  EXPECT_GT(tally.held, tally.failed / 3) << "too few scenes still hold";
  EXPECT_GT(tally.failed, tally.held / 20) << "too few changes matter";
  RecordProperty("held", tally.held);
  RecordProperty("failed", tally.failed);
}

}  // namespace

}  // namespace graphlift::guards
