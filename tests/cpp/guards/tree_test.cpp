// The tree as a whole: order, leaf checks, symbols, fetches, allocation, and that its shortcut never outlives what it
// saw.
#include <cstdlib>

#include "guards/scene.h"

namespace graphlift::guards {

namespace {

OriginId dict_item(OriginTable& origins, OriginId parent, const char* key) {
  return origins.child(parent, OriginKind::DictItem, text_object(key).get());
}

// Counts its calls; binds a symbol to len(object) when told to.
class Probe final : public LeafCheck {
 public:
  Probe(int* calls, bool* answer, ir::SymbolId binds = -1) : calls_(calls), answer_(answer), binds_(binds) {}
  bool check(PyObject* object, int64_t* symbols) const override {
    ++*calls_;
    if (binds_ >= 0) symbols[binds_] = PyList_GET_SIZE(object);
    return *answer_;
  }
  std::string text(const std::string& origin) const override { return origin + " pleases the probe"; }
  std::string explain(PyObject*) const override { return "displeases the probe"; }

 private:
  int* calls_;
  bool* answer_;
  ir::SymbolId binds_;
};

TEST(Tree, AnEmptySetAlwaysHolds) {
  Checked tree({});
  EXPECT_TRUE(tree.holds(Roots()));
  EXPECT_EQ(tree.tree().text(), "");
}

TEST(Tree, LeafChecksRunOnEveryHit) {
  Scene scene("x = [1]\nd = {'x': x}");
  int calls = 0;
  bool answer = true;
  GuardSet guards;
  OriginTable& origins = guards.origins();
  const OriginId x = dict_item(origins, origins.root(OriginKind::Local), "x");
  guards.add_check(x, std::make_unique<Probe>(&calls, &answer));
  guards.add_check(x, std::make_unique<Probe>(&calls, &answer));
  Checked tree(std::move(guards), {x});
  for (int i = 1; i <= 10; ++i) {
    EXPECT_TRUE(tree.once(scene.roots({"d"})));
    EXPECT_EQ(calls, i);
  }
  EXPECT_EQ(tree.fetched()[0].get(), scene.at("x"));
  answer = false;
  EXPECT_FALSE(tree.once(scene.roots({"d"})));
  EXPECT_EQ(tree.tree().explain(scene.roots({"d"})), "L[0]['x'] displeases the probe");
  EXPECT_EQ(tree.tree().text(), "L[0]['x'] pleases the probe\n");
  answer = true;
  EXPECT_TRUE(tree.holds(scene.roots({"d"})));
}

TEST(Tree, GlobalChecksRunFirst) {
  int calls = 0, global_calls = 0;
  bool answer = true, global_answer = false;
  Scene scene("x = [1]");
  GuardSet guards;
  guards.add_check(guards.origins().root(OriginKind::Local), std::make_unique<Probe>(&calls, &answer));
  guards.add_global(std::make_unique<Probe>(&global_calls, &global_answer));
  Checked tree(std::move(guards));
  EXPECT_FALSE(tree.once(scene.roots({"x"})));
  EXPECT_EQ(calls, 0);
  EXPECT_EQ(tree.tree().explain(scene.roots({"x"})), "displeases the probe");
}

TEST(Tree, Symbols) {
  Scene scene("x = [1, 2, 3]; n = 6; m = 6; text = 'no int'; small = 1; big = 2**70; true = True; seven = 7");
  int calls = 0;
  bool answer = true;
  GuardSet guards;
  OriginTable& origins = guards.origins();
  guards.add_check(origins.root(OriginKind::Local, 0), std::make_unique<Probe>(&calls, &answer, 0));
  guards.bind_symbol(origins.root(OriginKind::Local, 1), 1);
  guards.bind_symbol(origins.root(OriginKind::Local, 2), 1);
  const ir::Sym size = ir::Sym::symbol(0), number = ir::Sym::symbol(1);
  guards.add_symbolic({ir::Relation::Eq, size * 2, number});
  guards.add_symbolic({ir::Relation::Lt, size, number});
  Checked tree(std::move(guards), {}, 2);
  EXPECT_TRUE(tree.holds(scene.roots({"x", "n", "m"})));
  EXPECT_EQ(tree.symbols(), (std::vector<int64_t>{3, 6}));
  auto why = [&](std::vector<std::string> names) {
    const Roots roots = scene.roots(names);
    EXPECT_FALSE(tree.holds(roots));
    return tree.tree().explain(roots);
  };
  EXPECT_EQ(why({"x", "n", "seven"}), "L[2] is 7, another value than s1 has elsewhere");
  EXPECT_EQ(why({"x", "seven", "seven"}), size.str() + "*2 == s1 does not hold for s0 = 3, s1 = 7");
  EXPECT_EQ(why({"x", "text", "m"}), "L[1] is no int of 64 bits");
  EXPECT_EQ(why({"x", "big", "m"}), "L[1] is no int of 64 bits");
  EXPECT_EQ(why({"x", "true", "m"}), "L[1] is no int of 64 bits");
  EXPECT_EQ(why({"x", "small", "m"}), "L[1] is 1, less than 2");
  EXPECT_TRUE(tree.holds(scene.roots({"x", "n", "m"})));
}

// An object with lists of modules in dicts, as nn.Module has them.
constexpr const char* kModules = R"(
class Module:
    def __init__(self, depth):
        self._parameters = {'weight': [depth], 'bias': None}
        self._modules = {str(i): Module(depth - 1) for i in range(3)} if depth else {}
        self._hooks = {}
        self.training = True
m = Module(2)
def leaf(): return m._modules['1']._modules['2']
)";

// Guards what a forward pass of the modules reads; returns the origins of the parameters.
std::vector<OriginId> guard_module(GuardSet* guards, OriginId where, PyObject* module) {
  OriginTable& origins = guards->origins();
  std::vector<OriginId> parameters;
  guards->add(where, GuardKind::TypeIs, reinterpret_cast<PyObject*>(Py_TYPE(module)));
  const OriginId dict = origins.child(where, OriginKind::InstanceDict);
  guards->add(dict_item(origins, dict, "training"), GuardKind::Equals, Py_True);
  guards->add(dict_item(origins, dict, "_hooks"), GuardKind::Length, nullptr, 0);
  const OriginId own = dict_item(origins, dict, "_parameters");
  parameters.push_back(dict_item(origins, own, "weight"));
  guards->add(parameters.back(), GuardKind::TypeIs, reinterpret_cast<PyObject*>(&PyList_Type));
  guards->add(dict_item(origins, own, "bias"), GuardKind::Equals, Py_None);
  const OriginId below = dict_item(origins, dict, "_modules");
  Ref modules = Ref::steal(PyObject_GetAttrString(module, "_modules"));
  Ref keys = Ref::steal(PySequence_Tuple(modules.get()));
  guards->add(below, GuardKind::KeysAre, keys.get());
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(keys.get()); ++i) {
    PyObject* key = PyTuple_GET_ITEM(keys.get(), i);
    for (OriginId id :
         guard_module(guards, origins.child(below, OriginKind::DictItem, key), PyDict_GetItem(modules.get(), key)))
      parameters.push_back(id);
  }
  return parameters;
}

struct ModuleTree {
  Scene scene{kModules};
  Checked tree = make();
  Checked make() {
    GuardSet guards;
    std::vector<OriginId> fetches = guard_module(&guards, guards.origins().root(OriginKind::Local), scene.at("m"));
    return Checked(std::move(guards), fetches);
  }
  bool holds() { return tree.holds(scene.roots({"m"})); }
  std::string why() { return tree.tree().explain(scene.roots({"m"})); }
};

TEST(Tree, SeesEveryChangeOfAModule) {
  const char* const changes[][2] = {
      {"leaf().training = False", "leaf().training = True"},
      {"leaf()._parameters['weight'] = ()", "leaf()._parameters['weight'] = []"},
      {"leaf()._parameters['bias'] = 0", "leaf()._parameters['bias'] = None"},
      {"leaf()._hooks[0] = 1", "leaf()._hooks.clear()"},
      {"leaf().__class__ = type('Other', (), {})", "leaf().__class__ = Module"},
      {"kept = leaf().__dict__; leaf().__dict__ = dict(kept, training=False)", "leaf().__dict__ = kept"},
      {"m._modules['1']._modules['3'] = 0", "del m._modules['1']._modules['3']"},
      {"kept = m; m = Module(1)", "m = kept"},
      {"m._modules['1'] = Module(2)", "m._modules['1'] = Module(1)"},
  };
  ModuleTree modules;
  EXPECT_TRUE(modules.holds());
  for (const auto& [change, undo] : changes) {
    for (int again = 0; again < 3; ++again) {
      modules.scene.run(change);
      EXPECT_FALSE(modules.holds()) << change;
      EXPECT_NE(modules.why(), "");
      modules.scene.run(undo);
      EXPECT_TRUE(modules.holds()) << undo << ": " << modules.why();
    }
  }
  for (int i = 0; i < 40; ++i) {  // a dict that changes on every call
    modules.scene.run("leaf().counter = 1");
    EXPECT_TRUE(modules.holds());
  }
}

TEST(Tree, DeliversWhatIsThereNow) {
  ModuleTree modules;
  for (int i = 0; i < 12; ++i) {
    EXPECT_TRUE(modules.holds());
    modules.scene.run("new = leaf()._parameters['weight'] = ['new']");
    EXPECT_TRUE(modules.holds());
    bool delivered = false;
    for (const Ref& object : modules.tree.fetched()) delivered |= object.get() == modules.scene.at("new");
    EXPECT_TRUE(delivered);
  }
}

// Objects in turn: each is remembered, a change of any is seen, and new ones each time cost no correctness.
TEST(Tree, SeveralObjectsInTurn) {
  ModuleTree modules;
  modules.scene.run("many = [Module(2) for _ in range(4)]\ndef use(i):\n  global m\n  m = many[i]");
  for (int round = 0; round < 30; ++round) {
    modules.scene.run("use(" + std::to_string(round % 4) + ")");
    EXPECT_TRUE(modules.tree.once(modules.scene.roots({"m"})));
    Ref first = modules.scene.eval("m._parameters['weight']");
    EXPECT_EQ(modules.tree.fetched()[0].get(), first.get());
    if (round % 5 != 4) continue;
    modules.scene.run("use(2); leaf().training = False");
    EXPECT_FALSE(modules.holds());
    modules.scene.run("leaf().training = True");
    EXPECT_TRUE(modules.holds());
  }
  for (int round = 0; round < 400; ++round) {
    modules.scene.run(round % 3 ? "m = Module(2)" : "m = Module(2); leaf().training = False");
    EXPECT_EQ(modules.tree.once(modules.scene.roots({"m"})), round % 3 != 0);
  }
}

TEST(Tree, AFailedCheckDeliversNothing) {
  Scene scene("d = {'x': [], 'y': []}");
  GuardSet guards;
  OriginTable& origins = guards.origins();
  const OriginId x = dict_item(origins, origins.root(OriginKind::Local), "x");
  guards.add(dict_item(origins, origins.root(OriginKind::Local), "y"), GuardKind::Length, nullptr, 1);
  GuardTree tree(std::move(guards), {x}, 0, nullptr);
  PyObject* fetched = nullptr;
  EXPECT_FALSE(tree.check(scene.roots({"d"}), &fetched, nullptr));
  EXPECT_EQ(fetched, nullptr);
}

// --- allocation: Python's allocators and operator new are counted
// ------------------------------------------------------

struct Counting {
  PyMemAllocatorEx saved[3];
  size_t calls = 0;
  static constexpr PyMemAllocatorDomain kDomains[3] = {PYMEM_DOMAIN_RAW, PYMEM_DOMAIN_MEM, PYMEM_DOMAIN_OBJ};
  struct Domain {
    Counting* owner;
    PyMemAllocatorEx* real;
  } domains[3];

  Counting() {
    for (int i = 0; i < 3; ++i) {
      PyMem_GetAllocator(kDomains[i], &saved[i]);
      domains[i] = {this, &saved[i]};
      PyMemAllocatorEx counting = {&domains[i], malloc, calloc, realloc, free};
      PyMem_SetAllocator(kDomains[i], &counting);
    }
  }
  ~Counting() {
    for (int i = 0; i < 3; ++i) PyMem_SetAllocator(kDomains[i], &saved[i]);
  }
  static PyMemAllocatorEx* count(void* context) {
    Domain* domain = static_cast<Domain*>(context);
    ++domain->owner->calls;
    return domain->real;
  }
  static void* malloc(void* context, size_t size) {
    PyMemAllocatorEx* real = count(context);
    return real->malloc(real->ctx, size);
  }
  static void* calloc(void* context, size_t count_of, size_t size) {
    PyMemAllocatorEx* real = count(context);
    return real->calloc(real->ctx, count_of, size);
  }
  static void* realloc(void* context, void* place, size_t size) {
    PyMemAllocatorEx* real = count(context);
    return real->realloc(real->ctx, place, size);
  }
  static void free(void* context, void* place) {
    PyMemAllocatorEx* real = static_cast<Domain*>(context)->real;
    real->free(real->ctx, place);
  }
};

size_t news = 0;

}  // namespace

}  // namespace graphlift::guards

#ifndef __SANITIZE_ADDRESS__  // which has its own
void* operator new(size_t size) {
  ++graphlift::guards::news;
  return std::malloc(size);
}
void operator delete(void* place) noexcept { std::free(place); }
void operator delete(void* place, size_t) noexcept { std::free(place); }
#endif

namespace graphlift::guards {

namespace {

TEST(Tree, AHitAllocatesNothing) {
  ModuleTree modules;
  const Roots roots = modules.scene.roots({"m"});
  std::vector<PyObject*> fetched(modules.tree.tree().fetch_count(), nullptr);
  auto check = [&] {
    EXPECT_TRUE(modules.tree.tree().check(roots, fetched.data(), nullptr));
    for (PyObject*& object : fetched) Py_CLEAR(object);
  };
  check();
  size_t python_calls = 0, new_calls = 0;
  {
    Counting counting;
    const size_t before = news;
    for (int i = 0; i < 10; ++i) check();
    new_calls = news - before;
    python_calls = counting.calls;
  }
  EXPECT_EQ(python_calls, 0u);
  EXPECT_EQ(new_calls, 0u);
}

}  // namespace

}  // namespace graphlift::guards
