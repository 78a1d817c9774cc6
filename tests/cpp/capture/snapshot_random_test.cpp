// Owns: random graphs of fresh objects through snapshot and recipe: the copy has the structure and identity pattern of
// the original. And the n-th failing allocation while a recipe runs: a Python error, and nothing is left behind.
#include "rebuild.h"

namespace graphlift::capture::test {
namespace {

const char* const kBuilderSource = R"(
import collections, dataclasses, functools, itertools, random, types
class Plain: pass
class Slotted: __slots__ = ('left', 'right')
class Both(Slotted): __slots__ = ('__dict__', '__weakref__')
@dataclasses.dataclass
class Data:
    a: object
    b: object = None
Pair = collections.namedtuple('Pair', 'first second')
class ListOf(list): pass
class DictOf(dict): __slots__ = ('tag',)
class Text(str): pass
class Number(int): pass
class Trouble(ValueError): pass
class Method:
    def call(self): return self

class Builder:
    def __init__(self, seed, outside):
        self.rng, self.pool, self.fresh, self.outside = random.Random(seed), [], [], outside
    def constant(self):
        return self.rng.choice([0, 1, -5, 2 ** 80, 1.5, 'a', 'longer text', b'x', None, True, (1, ('a',)), ..., len, int])
    def value(self):
        r = self.rng.random()
        if r < .35 or not self.pool: return self.constant()
        return self.rng.choice(self.outside) if r < .45 else self.rng.choice(self.pool)
    def values(self, most=4): return [self.value() for _ in range(self.rng.randrange(most))]
    def key(self):
        return self.rng.choice(['a', 'b', 'c', 1, 2, (1, 'a'), None, frozenset([1]), 2.5])
    def fill(self, o):
        for name in ('left', 'right'):
            if self.rng.random() < .7: setattr(o, name, self.value())
        return o
    def function(self):
        a, b = self.value(), self.value()
        def f(x=a, *, y=b):
            return b, x, y, g
        def g(): return f, a
        if self.rng.random() < .5: f.attribute = self.value()
        self.fresh += [f, g]
        return self.rng.choice([f, g])
    def iterator(self):
        values = self.values() + [1]
        i = self.rng.choice([iter, reversed, enumerate, lambda v: zip(v, 'abc'),
                             lambda v: iter(tuple(v)),
                             lambda v: map(self.method().__func__, v)])(values)
        if self.rng.random() < .5:
            try: next(i)
            except (TypeError, AttributeError): pass
        return i
    def method(self):
        return Method().call
    def exception(self):
        e = self.rng.choice([Trouble, KeyError, StopIteration])(*self.values())
        others = [o for o in self.pool if isinstance(o, BaseException)]
        if others and self.rng.random() < .5: e.__context__ = self.rng.choice(others)
        if others and self.rng.random() < .3: e.__cause__ = self.rng.choice(others)
        return e
    def make(self):
        kind = self.rng.randrange(22)
        if kind <= 1: return self.values(6)
        if kind == 2: return tuple(self.values())
        if kind == 3: return {self.key(): v for v in self.values()}
        if kind == 4: return {self.rng.choice(['a', 1, (2,), None]) for _ in range(3)}
        if kind == 5: return self.fill(Slotted())
        if kind == 6: o = self.fill(Both()); o.more = self.value(); return o
        if kind == 7: return Data(self.value(), self.value())
        if kind == 8: return Pair(self.value(), self.value())
        if kind == 9: l = ListOf(self.values()); l.tag = self.value(); return l
        if kind == 10: d = DictOf(a=self.value()); d.tag = self.value(); return d
        if kind == 11:
            d = collections.OrderedDict((self.key(), v) for v in self.values())
            if d: d.move_to_end(self.rng.choice(list(d)))
            return d
        if kind == 12: d = collections.defaultdict(list); d[self.key()] = self.value(); return d
        if kind == 13: return collections.deque(self.values(), maxlen=self.rng.choice([None, 2]))
        if kind == 14: return self.function()
        if kind == 15: return self.method()
        if kind == 16: return self.exception()
        if kind == 17: return self.iterator()
        if kind == 18: return types.CellType(*self.values(2)[:1])
        if kind == 19: return self.rng.choice([Text('t'), Number(7)])
        if kind == 20: return functools.partial(len, *self.values(), k=self.value())
        o = Plain(); o.a = self.value(); o.b = self.value()
        if self.rng.random() < .2: self.pool.append(o.__dict__)
        return o
    def tangle(self):
        o = self.rng.choice(self.pool)
        if isinstance(o, (list, collections.deque)): o.append(self.value())
        elif isinstance(o, dict): dict.__setitem__(o, 'late', self.value()) if type(o) in (dict, DictOf) else None
        elif isinstance(o, Plain): o.late = self.value()
        elif isinstance(o, types.CellType): o.cell_contents = self.value()
    def build(self, size):
        for _ in range(size): self.pool.append(self.make())
        for _ in range(size): self.tangle()
        return self.rng.sample(self.pool, min(len(self.pool), 6))
)";

bool build(Python& python, int seed, int size) {
  python.run("outside = [[1], {'o': 2}, Plain()]; b = Builder(" + std::to_string(seed) + ", outside); x = b.build(" +
             std::to_string(size) + "); fresh = b.fresh");
  return python["x"] != nullptr;
}

void declare(Session& session, Python& python) {
  session.fresh_functions(python["fresh"]);
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(python["outside"]); ++i)
    session.outside(PyList_GET_ITEM(python["outside"], i));
}

TEST(SnapshotRandom, GraphsComeBackEqual) {
  Python python;
  python.run(kShapeSource);
  python.run(kBuilderSource);
  int rebuilt = 0;
  for (int seed = 0; seed < 300; ++seed) {
    ASSERT_TRUE(build(python, seed, 4 + seed % 40));
    Session session;
    declare(session, python);
    Ref made = session.rebuild(python["x"]);
    ASSERT_FALSE(PyErr_Occurred()) << (PyErr_Print(), seed);
    ASSERT_TRUE(made) << session.taken.unrebuildable << " in " << seed;
    ++rebuilt;
    python.set("y", made.get());
    // Text of the original first: shape() reduces iterators, which changes neither.
    ASSERT_TRUE(python.holds("shape(x, outside) == shape(y, outside)"))
        << seed
        << (python.run(
                "for p, q in zip(shape(x, outside)[1], shape(y, outside)[1]):\n if p != q: print(p, q, sep='\\n')"),
            "");
  }
  EXPECT_EQ(rebuilt, 300);
}

// Fails the allocation with the given number, counted from where it is armed.
class FailingAllocator {
 public:
  FailingAllocator() {
    for (PyMemAllocatorDomain domain : kDomains) {
      PyMem_GetAllocator(domain, &original_[domain]);
      PyMemAllocatorEx failing{this_of(domain), malloc_in, calloc_in, realloc_in, free_in};
      PyMem_SetAllocator(domain, &failing);
    }
  }
  ~FailingAllocator() {
    for (PyMemAllocatorDomain domain : kDomains) PyMem_SetAllocator(domain, &original_[domain]);
  }
  void arm(long number) { left_ = number; }
  bool fired() const { return left_ == 0; }

 private:
  static constexpr PyMemAllocatorDomain kDomains[] = {PYMEM_DOMAIN_MEM, PYMEM_DOMAIN_OBJ};
  struct Place {
    FailingAllocator* self;
    PyMemAllocatorDomain domain;
  };
  void* this_of(PyMemAllocatorDomain domain) { return &(places_[domain] = {this, domain}); }
  static bool fails(void* context) {
    long& left = static_cast<Place*>(context)->self->left_;
    return left > 0 && --left == 0;
  }
  static PyMemAllocatorEx& original(void* context) {
    auto* place = static_cast<Place*>(context);
    return place->self->original_[place->domain];
  }
  static void* malloc_in(void* c, size_t n) { return fails(c) ? nullptr : original(c).malloc(original(c).ctx, n); }
  static void* calloc_in(void* c, size_t n, size_t s) {
    return fails(c) ? nullptr : original(c).calloc(original(c).ctx, n, s);
  }
  static void* realloc_in(void* c, void* p, size_t n) {
    return fails(c) ? nullptr : original(c).realloc(original(c).ctx, p, n);
  }
  static void free_in(void* c, void* p) { original(c).free(original(c).ctx, p); }

  PyMemAllocatorEx original_[3];
  Place places_[3];
  long left_ = -1;
};

// References that the test's own objects hold, as far as a recipe could add to them.
std::vector<Py_ssize_t> counts(const Recipe& recipe, const std::map<guards::OriginId, PyObject*>& objects) {
  std::vector<Py_ssize_t> counts;
  for (const RecipeNode& node : recipe.nodes)
    if (node.object && PyGC_IsEnabled()) counts.push_back(Py_REFCNT(node.object.get()));
  for (const auto& [origin, object] : objects) counts.push_back(Py_REFCNT(object));
  return counts;
}

TEST(SnapshotRandom, AFailedAllocationLeavesNothingBehind) {
  Python python;
  python.run(kBuilderSource);
  python.run(
      "import gc, sys\ndef alive():\n  gc.collect()\n"
      "  found = sum(type(o).__module__ == 'builtins' and type(o) in KINDS for o in gc.get_objects())\n"
      "  sys._clear_type_cache(); return found");  // it holds the names that were looked up last
  python.run("KINDS = (Plain, Slotted, Both, Data, Pair, ListOf, DictOf, Trouble, Method, collections.OrderedDict)");
  int failures = 0;
  for (int seed = 1000; seed < 1006; ++seed) {
    ASSERT_TRUE(build(python, seed, 25));
    Session session;
    declare(session, python);
    ExitState exit;
    exit.result = python["x"];
    SnapshotResult taken = snapshot(session.capture, exit);
    ASSERT_EQ(taken.unrebuildable, "");
    ASSERT_TRUE(session.run(taken));  // warm: caches of types and lazily imported modules
    session.made.clear();
    Ref before_alive = python.eval("alive()");
    const std::vector<Py_ssize_t> before = counts(taken.recipe, session.objects);
    FailingAllocator allocator;
    for (long number = 1;; ++number) {
      allocator.arm(number);
      const bool done = session.run(taken);
      const bool fired = allocator.fired();
      allocator.arm(-1);
      if (!done) {
        ASSERT_TRUE(PyErr_Occurred()) << seed << " " << number;  // CPython turns some into other errors
        ++failures;
      }
      PyErr_Clear();
      session.made.clear();
      if (!fired) break;
    }
    Ref after_alive = python.eval("alive()");
    EXPECT_EQ(PyLong_AsLong(after_alive.get()), PyLong_AsLong(before_alive.get())) << seed;
    EXPECT_EQ(counts(taken.recipe, session.objects), before) << seed << "\n" << taken.recipe.text();
  }
  EXPECT_GT(failures, 50);
}

}  // namespace
}  // namespace graphlift::capture::test
