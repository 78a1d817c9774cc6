// Every kind of origin: what it finds, in the slow fetch and in a tree, its words, and that a missing part is no error.
#include <set>

#include "guards/scene.h"

namespace graphlift::guards {

namespace {

constexpr const char* kOriginSource = R"(
import contextvars, functools, weakref, types
class Slots:
    __slots__ = ('full', 'empty', '__weakref__')
class Plain:
    shared = 'from the class'
    def method(self): pass
def outer():
    captured = ['captured']
    unset = None
    def inner(a=1, *, b=2):
        return captured, unset
    del unset
    return inner
function = outer()
function.extra = 3
slots = Slots(); slots.full = 'in the slot'
plain = Plain(); plain.x = 'attribute'
bare = object()
listed = ['zero', 'one']
tupled = ('zero', 'one')
mapping = {'key': 'value', 7: 'seven', (1, 'a'): 'pair', Plain: 'class'}
partial = functools.partial(function, 5, b=6)
module = types.ModuleType('a_module'); module.inside = 'module value'
weak = weakref.ref(plain)
gone = weakref.ref(Slots())
method = plain.method
static = staticmethod(function)
variable = contextvars.ContextVar('variable'); variable.set(tupled)
unset = contextvars.ContextVar('unset')
cell = types.CellType('content')
hollow = types.CellType()
)";

struct OriginCase {
  OriginKind kind;
  const char* owner;  // the local that the step starts from; "": a root
  const char* key;    // Python expression; "" for none
  int index;
  const char* expected;  // Python expression; "" when nothing is there
  const char* text;
};

void PrintTo(const OriginCase& row, std::ostream* out) {
  *out << row.text << " of " << (*row.owner ? row.owner : "a root");
}

const OriginCase kOriginCases[] = {
    {OriginKind::Local, "", "", 0, "plain", "L[0]"},
    {OriginKind::Local, "", "", 1, "", "L[1]"},
    {OriginKind::Stack, "", "", 0, "plain", "S[0]"},
    {OriginKind::Caller, "", "", 0, "plain", "C[0]"},
    {OriginKind::Globals, "", "", 0, "globals()", "G"},
    {OriginKind::Builtins, "", "", 0, "__builtins__", "B"},
    {OriginKind::Function, "", "", 0, "function", "F"},
    {OriginKind::Constant, "", "Plain", 0, "Plain", "class Plain"},
    {OriginKind::Constant, "", "module", 0, "module", "module a_module"},
    {OriginKind::InstanceDict, "plain", "", 0, "plain.__dict__", "L[0].__dict__"},
    {OriginKind::InstanceDict, "bare", "", 0, "", "L[0].__dict__"},
    {OriginKind::DictItem, "mapping", "'key'", 0, "'value'", "L[0]['key']"},
    {OriginKind::DictItem, "mapping", "7", 0, "'seven'", "L[0][7]"},
    {OriginKind::DictItem, "mapping", "(1, 'a')", 0, "'pair'", "L[0][(1, 'a')]"},
    {OriginKind::DictItem, "mapping", "Plain", 0, "'class'", "L[0][class Plain]"},
    {OriginKind::DictItem, "mapping", "'absent'", 0, "", "L[0]['absent']"},
    {OriginKind::DictItem, "listed", "'key'", 0, "", "L[0]['key']"},
    {OriginKind::ListItem, "listed", "", 1, "'one'", "L[0][1]"},
    {OriginKind::ListItem, "listed", "", 2, "", "L[0][2]"},
    {OriginKind::ListItem, "tupled", "", 0, "", "L[0][0]"},
    {OriginKind::TupleItem, "tupled", "", 0, "'zero'", "L[0][0]"},
    {OriginKind::TupleItem, "tupled", "", 5, "", "L[0][5]"},
    {OriginKind::Slot, "slots", "Slots.full", 0, "slots.full", "L[0].full"},
    {OriginKind::Slot, "slots", "Slots.empty", 0, "", "L[0].empty"},
    {OriginKind::Slot, "plain", "Slots.full", 0, "", "L[0].full"},
    {OriginKind::TypeOf, "plain", "", 0, "Plain", "type(L[0])"},
    {OriginKind::TypeAttr, "Plain", "'shared'", 0, "Plain.shared", "L[0].__mro__['shared']"},
    {OriginKind::TypeAttr, "Plain", "'__repr__'", 0, "object.__repr__", "L[0].__mro__['__repr__']"},
    {OriginKind::TypeAttr, "Plain", "'absent'", 0, "", "L[0].__mro__['absent']"},
    {OriginKind::TypeAttr, "plain", "'shared'", 0, "", "L[0].__mro__['shared']"},
    {OriginKind::Cell, "cell", "", 0, "'content'", "L[0].cell_contents"},
    {OriginKind::Cell, "hollow", "", 0, "", "L[0].cell_contents"},
    {OriginKind::Closure, "function", "", 0, "function.__closure__[0]", "L[0].__closure__[0]"},
    {OriginKind::Closure, "outer", "", 0, "", "L[0].__closure__[0]"},
    {OriginKind::Defaults, "function", "", 0, "function.__defaults__", "L[0].__defaults__"},
    {OriginKind::Defaults, "outer", "", 0, "", "L[0].__defaults__"},
    {OriginKind::KwDefaults, "function", "", 0, "function.__kwdefaults__", "L[0].__kwdefaults__"},
    {OriginKind::Code, "function", "", 0, "function.__code__", "L[0].__code__"},
    {OriginKind::FunctionGlobals, "function", "", 0, "function.__globals__", "L[0].__globals__"},
    {OriginKind::FunctionDict, "function", "", 0, "function.__dict__", "L[0].__dict__"},
    {OriginKind::FunctionDict, "outer", "", 0, "", "L[0].__dict__"},
    {OriginKind::MethodSelf, "method", "", 0, "plain", "L[0].__self__"},
    {OriginKind::MethodSelf, "plain", "", 0, "", "L[0].__self__"},
    {OriginKind::MethodFunction, "method", "", 0, "Plain.method", "L[0].__func__"},
    {OriginKind::MethodFunction, "static", "", 0, "function", "L[0].__func__"},
    {OriginKind::PartialPart, "partial", "'func'", 0, "function", "L[0].func"},
    {OriginKind::PartialPart, "partial", "'args'", 0, "partial.args", "L[0].args"},
    {OriginKind::PartialPart, "partial", "'keywords'", 0, "partial.keywords", "L[0].keywords"},
    {OriginKind::PartialPart, "plain", "'func'", 0, "", "L[0].func"},
    {OriginKind::ModuleDict, "module", "", 0, "vars(module)", "vars(L[0])"},
    {OriginKind::WeakTarget, "weak", "", 0, "plain", "L[0]()"},
    {OriginKind::WeakTarget, "gone", "", 0, "", "L[0]()"},
    {OriginKind::ContextValue, "variable", "", 0, "tupled", "L[0].get()"},
    {OriginKind::ContextValue, "unset", "", 0, "", "L[0].get()"},
    {OriginKind::CacheDict, "plain", "", 0, "", "cache of L[0]"},
    {OriginKind::CacheEntry, "plain", "", 0, "", "L[0].result"},
    {OriginKind::TensorGrad, "plain", "", 0, "listed", "L[0].grad"},
    {OriginKind::TensorDict, "plain", "", 0, "plain.__dict__", "L[0].__dict__"},
    {OriginKind::Custom, "plain", "'wrapped'", 0, "tupled", "L[0].wrapped"},
    {OriginKind::Custom, "plain", "'nobody'", 0, "", "L[0].nobody"},
};

Scene* scene = nullptr;

class OriginTest : public testing::TestWithParam<OriginCase> {
 protected:
  static void SetUpTestSuite() {
    scene = new Scene(kOriginSource);
    register_fetch(OriginKind::TensorGrad, [](PyObject*, const Origin&) { return Ref::borrow(scene->at("listed")); });
    register_custom_fetch("wrapped", [](PyObject*, const Origin&) { return Ref::borrow(scene->at("tupled")); });
  }
  static void TearDownTestSuite() { delete scene; }

  OriginId make(GuardSet* guards) {
    const OriginCase& row = GetParam();
    Ref key = *row.key ? scene->eval(row.key) : Ref();
    OriginTable& origins = guards->origins();
    if (!*row.owner) return origins.root(row.kind, row.index, key.get());
    return origins.child(origins.root(OriginKind::Local), row.kind, key.get(), row.index);
  }
  Roots roots() { return scene->roots({*GetParam().owner ? GetParam().owner : "plain", ""}); }
};

TEST_P(OriginTest, FindsItsObject) {
  GuardSet guards;
  const OriginId id = make(&guards);
  EXPECT_EQ(make(&guards), id) << "equal paths have equal ids";
  EXPECT_EQ(guards.origins().text(id, nullptr), GetParam().text);
  Ref found = guards.origins().fetch(id, roots());
  EXPECT_FALSE(PyErr_Occurred());
  Checked tree(std::move(guards), {id});
  if (!*GetParam().expected) {
    EXPECT_FALSE(found);
    EXPECT_FALSE(tree.holds(roots()));
    EXPECT_EQ(tree.tree().explain(roots()), std::string(GetParam().text) + " does not exist");
    return;
  }
  Ref expected = scene->eval(GetParam().expected);
  EXPECT_EQ(found.get(), expected.get());
  EXPECT_TRUE(tree.holds(roots()));
  EXPECT_EQ(tree.fetched().at(0).get(), expected.get());
}

TEST_P(OriginTest, KeepsReferenceCounts) {
  GuardSet guards;
  const OriginId id = make(&guards);
  Checked tree(std::move(guards), {id});
  tree.holds(roots());
  tree.fetched().clear();
  Ref expected = *GetParam().expected ? scene->eval(GetParam().expected) : Ref();
  const Py_ssize_t before = expected ? Py_REFCNT(expected.get()) : 0;
  for (int i = 0; i < 20; ++i) tree.once(roots());
  tree.fetched().clear();
  if (expected) {
    EXPECT_EQ(Py_REFCNT(expected.get()), before);
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, OriginTest, testing::ValuesIn(kOriginCases));

TEST(Origins, EveryKindHasACase) {
  std::set<OriginKind> covered;
  for (const OriginCase& row : kOriginCases) covered.insert(row.kind);
#define KIND(name, text) EXPECT_TRUE(covered.count(OriginKind::name)) << #name;
  GRAPHLIFT_ORIGINS(KIND)
#undef KIND
}

TEST(Origins, KeysThatAreEqualButDifferentAreDifferentSteps) {
  OriginTable origins;
  const OriginId root = origins.root(OriginKind::Local);
  Ref one = Ref::steal(PyLong_FromLong(1)), real = Ref::steal(PyFloat_FromDouble(1.0));
  EXPECT_NE(origins.child(root, OriginKind::DictItem, one.get()), origins.child(root, OriginKind::DictItem, Py_True));
  EXPECT_NE(origins.child(root, OriginKind::DictItem, one.get()),
            origins.child(root, OriginKind::DictItem, real.get()));
}

TEST(Origins, LocalsHaveTheirNames) {
  Scene scene("def f(first, second):\n  third = 1\ncode = f.__code__");
  OriginTable origins;
  PyCodeObject* code = reinterpret_cast<PyCodeObject*>(scene.at("code"));
  Ref key = text_object("lin");
  const OriginId self = origins.root(OriginKind::Local, 1);
  EXPECT_EQ(origins.text(self, code), "L['second']");
  const OriginId dict = origins.child(self, OriginKind::InstanceDict);
  EXPECT_EQ(origins.text(origins.child(dict, OriginKind::DictItem, key.get()), code), "L['second'].__dict__['lin']");
}

// A key whose __eq__ is Python code and whose hash is that of the wanted key: not found, not certainly absent, not
// called.
TEST(Origins, NoPythonCodeCompares) {
  Scene scene(R"(
calls = []
class Sly:
    def __hash__(self): return hash('wanted')
    def __eq__(self, other): calls.append(other); return True
d = {Sly(): 'sly'}
)");
  GuardSet guards;
  Ref key = text_object("wanted");
  const OriginId dict = guards.origins().root(OriginKind::Local);
  const OriginId item = guards.origins().child(dict, OriginKind::DictItem, key.get());
  EXPECT_FALSE(guards.origins().fetch(item, scene.roots({"d"})));
  guards.add(item, GuardKind::Missing);
  EXPECT_FALSE(Checked(std::move(guards)).holds(scene.roots({"d"})));
  for (GuardKind kind : {GuardKind::HasKey, GuardKind::LacksKey}) {
    GuardSet keys;
    keys.add(keys.origins().root(OriginKind::Local), kind, key.get());
    EXPECT_FALSE(Checked(std::move(keys)).holds(scene.roots({"d"})));
  }
  EXPECT_EQ(PyList_GET_SIZE(scene.at("calls")), 0);
}

}  // namespace

}  // namespace graphlift::guards
