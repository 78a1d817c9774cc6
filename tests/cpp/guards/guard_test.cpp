// Every kind of guard: holds, then after a change of the scene doesn't, with the words that explain it.
#include <map>
#include <set>

#include "guards/constant.h"
#include "guards/scene.h"

namespace graphlift::guards {

namespace {

constexpr const char* kGuardSource = R"(
import collections
class A: pass
class B: pass
class Meta(type): pass
def f(): pass
def g(): pass
def cell_of(x):
    return (lambda: x).__closure__[0]
def hollow():
    x = 1
    c = (lambda: x).__closure__[0]
    del x
    return c
a = A()
one = 1; half = 0.5; nan = float('nan'); zero = 0.0
word = 'word'; data = b'data'; nested = (1, ('a', 2.0), None)
listed = [1, 2]; mapping = {'x': 1, 2: 'two'}; ordered = collections.OrderedDict(p=1, q=2)
chosen = {1, 'a', None}; frozen = frozenset(chosen)
empty_cell = hollow()
)";

struct Case {
  GuardKind kind;
  const char* where;    // a name of the scene, fetched as local 0
  const char* operand;  // Python expression
  int64_t number;
  const char* change;   // after this the guard fails
  const char* failure;  // and this is what explain says
  const char* text;
};

void PrintTo(const Case& row, std::ostream* out) { *out << row.text << " after " << row.change; }

const Case kGuardCases[] = {
    {GuardKind::TypeIs, "a", "A", 0, "a.__class__ = B", "type(L[0]) is class B, not class A", "type(L[0]) is class A"},
    {GuardKind::TypeIs, "listed", "list", 0, "listed = (1, 2)", "type(L[0]) is class tuple, not class list",
     "type(L[0]) is class list"},
    {GuardKind::TypeIs, "one", "int", 0, "one = True", "type(L[0]) is class bool, not class int",
     "type(L[0]) is class int"},
    {GuardKind::Is, "f", "f", 0, "h = f; f = g", "L[0] is function g, not function f", "L[0] is function f"},
    {GuardKind::Is, "f", "f", 0, "def f(): pass", "L[0] is another function f, not function f", "L[0] is function f"},
    {GuardKind::Is, "a", "a", 0, "b = a; a = A()", "L[0] is another <A object>, not <A object>", "L[0] is <A object>"},
    {GuardKind::Is, "listed", "listed", 0, "listed = [1, 2]", "L[0] is another <list object>, not <list object>",
     "L[0] is <list object>"},
    {GuardKind::IsNot, "a", "f", 0, "a = f", "L[0] is function f", "L[0] is not function f"},
    {GuardKind::Equals, "one", "1", 0, "one = 2", "L[0] is 2, not 1", "L[0] == 1"},
    {GuardKind::Equals, "one", "1", 0, "one = True", "L[0] is True, not 1", "L[0] == 1"},
    {GuardKind::Equals, "one", "1", 0, "one = 1.0", "L[0] is 1.0, not 1", "L[0] == 1"},
    {GuardKind::Equals, "nan", "float('nan')", 0, "nan = 1.5", "L[0] is 1.5, not nan", "L[0] == nan"},
    {GuardKind::Equals, "zero", "0.0", 0, "zero = -0.0", "L[0] is -0.0, not 0.0", "L[0] == 0.0"},
    {GuardKind::Equals, "word", "'wo' + 'rd'", 0, "word = 'Word'", "L[0] is 'Word', not 'word'", "L[0] == 'word'"},
    {GuardKind::Equals, "data", "b'da' + b'ta'", 0, "data = 'data'", "L[0] is 'data', not b'data'", "L[0] == b'data'"},
    {GuardKind::Equals, "nested", "(1, ('a', 2.0), None)", 0, "nested = (1, ('a', 2), None)",
     "L[0] is (1, ('a', 2), None), not (1, ('a', 2.0), None)", "L[0] == (1, ('a', 2.0), None)"},
    {GuardKind::Equals, "nested", "(1, ('a', 2.0), None)", 0, "nested = A()",
     "L[0] is <A object>, not (1, ('a', 2.0), None)", "L[0] == (1, ('a', 2.0), None)"},
    {GuardKind::Length, "listed", "", 2, "listed.append(3)", "len(L[0]) is 3, not 2", "len(L[0]) == 2"},
    {GuardKind::Length, "mapping", "", 2, "del mapping['x']", "len(L[0]) is 1, not 2", "len(L[0]) == 2"},
    {GuardKind::Length, "chosen", "", 3, "chosen.clear()", "len(L[0]) is 0, not 3", "len(L[0]) == 3"},
    {GuardKind::HasKey, "mapping", "'x'", 0, "del mapping['x']", "'x' is not in L[0]", "'x' in L[0]"},
    {GuardKind::HasKey, "mapping", "2", 0, "mapping.clear()", "2 is not in L[0]", "2 in L[0]"},
    {GuardKind::LacksKey, "mapping", "'y'", 0, "mapping['y'] = 0", "'y' is in L[0]", "'y' not in L[0]"},
    {GuardKind::LacksKey, "mapping", "A", 0, "mapping[A] = 0", "class A is in L[0]", "class A not in L[0]"},
    {GuardKind::KeysAre, "mapping", "('x', 2)", 0, "mapping['x'] = mapping.pop('x')",
     "list(L[0]) is (2, 'x'), not ('x', 2)", "list(L[0]) == ('x', 2)"},
    {GuardKind::KeysAre, "mapping", "('x', 2)", 0, "mapping = {'x': 1, 2.0: 0}",
     "list(L[0]) is ('x', 2.0), not ('x', 2)", "list(L[0]) == ('x', 2)"},
    {GuardKind::KeysAre, "ordered", "('p', 'q')", 0, "ordered.move_to_end('p')",
     "list(L[0]) is another ('p', 'q'), not ('p', 'q')", "list(L[0]) == ('p', 'q')"},
    {GuardKind::SetIs, "chosen", "frozenset({1, 'a', None})", 0, "chosen.add(2)", nullptr, nullptr},
    {GuardKind::SetIs, "chosen", "frozenset({1, 'a', None})", 0, "chosen.remove(1); chosen.add(True)", nullptr,
     nullptr},
    {GuardKind::SetIs, "frozen", "frozenset({1, 'a', None})", 0, "frozen = frozenset({1, 'a', A})", nullptr, nullptr},
    {GuardKind::CellEmpty, "empty_cell", "", 0, "empty_cell.cell_contents = 1", "L[0] is not empty", "L[0] is empty"},
};

class GuardTest : public testing::TestWithParam<Case> {
 protected:
  GuardTest() : scene_(kGuardSource) {}
  Checked make() {
    const Case& row = GetParam();
    GuardSet guards;
    Ref operand = *row.operand ? scene_.eval(row.operand) : Ref();
    const OriginId where = guards.origins().root(OriginKind::Local);
    for (int twice = 0; twice < 2; ++twice) guards.add(where, row.kind, operand.get(), row.number);
    return Checked(std::move(guards), {where});
  }
  Roots roots() { return scene_.roots({GetParam().where}); }
  Scene scene_;
};

TEST_P(GuardTest, HoldsUntilTheChange) {
  const Case& row = GetParam();
  Checked tree = make();
  EXPECT_EQ(tree.tree().guard_count(), 1u) << "duplicates are dropped";
  EXPECT_TRUE(tree.holds(roots()));
  if (row.text) {
    EXPECT_EQ(tree.tree().text(), std::string(row.text) + "\n");
  }
  tree.fetched().clear();
  scene_.run(row.change);
  EXPECT_FALSE(tree.holds(roots()));
  if (row.failure) {
    EXPECT_EQ(tree.tree().explain(roots()), row.failure);
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, GuardTest, testing::ValuesIn(kGuardCases));

OriginId item(OriginTable& origins, OriginId parent, const char* key) {
  return origins.child(parent, OriginKind::DictItem, text_object(key).get());
}

TEST(Guards, EveryKindHasACase) {
  std::set<GuardKind> covered = {GuardKind::Missing, GuardKind::SameAs, GuardKind::NotSameAs, GuardKind::TypeVersion};
  for (const Case& row : kGuardCases) covered.insert(row.kind);
#define GUARD(name, cost, text) EXPECT_TRUE(covered.count(GuardKind::name)) << #name;
  GRAPHLIFT_GUARDS(GUARD)
#undef GUARD
}

TEST(Guards, Missing) {
  Scene scene("class A: pass\na = A(); a.x = 1; d = {}");
  GuardSet guards;
  OriginTable& origins = guards.origins();
  const OriginId dict = origins.child(origins.root(OriginKind::Local), OriginKind::InstanceDict);
  const OriginId absent = item(origins, dict, "absent");
  const OriginId shared = origins.child(origins.child(origins.root(OriginKind::Local), OriginKind::TypeOf),
                                        OriginKind::TypeAttr, text_object("shared").get());
  guards.add(absent, GuardKind::Missing);
  guards.add(shared, GuardKind::Missing);
  guards.add(item(origins, dict, "x"), GuardKind::TypeIs, reinterpret_cast<PyObject*>(&PyLong_Type));
  Checked tree(std::move(guards));
  EXPECT_EQ(tree.tree().text(),
            "L[0].__dict__['absent'] does not exist\ntype(L[0].__dict__['x']) is class int\n"
            "type(L[0]).__mro__['shared'] does not exist\n");
  EXPECT_TRUE(tree.holds(scene.roots({"a"})));
  scene.run("a.absent = 1");
  EXPECT_FALSE(tree.holds(scene.roots({"a"})));
  EXPECT_EQ(tree.tree().explain(scene.roots({"a"})), "L[0].__dict__['absent'] exists");
  scene.run("del a.absent");
  EXPECT_TRUE(tree.holds(scene.roots({"a"})));
  scene.run("A.shared = 1");
  EXPECT_FALSE(tree.holds(scene.roots({"a"})));
}

TEST(Guards, SameAndNotSame) {
  Scene scene("x = object(); y = object(); d = {'x': x}");
  GuardSet guards;
  OriginTable& origins = guards.origins();
  const OriginId first = origins.root(OriginKind::Local, 0), second = origins.root(OriginKind::Local, 1);
  const OriginId held = item(origins, origins.root(OriginKind::Local, 2), "x");
  guards.add(first, GuardKind::NotSameAs, nullptr, second);
  guards.add(first, GuardKind::SameAs, nullptr, held);
  Checked tree(std::move(guards));
  EXPECT_EQ(tree.tree().text(), "L[0] is not L[1]\nL[0] is L[2]['x']\n");
  EXPECT_TRUE(tree.holds(scene.roots({"x", "y", "d"})));
  EXPECT_FALSE(tree.holds(scene.roots({"y", "y", "d"})));
  EXPECT_EQ(tree.tree().explain(scene.roots({"y", "y", "d"})), "L[0] is L[1]");
  EXPECT_FALSE(tree.holds(scene.roots({"y", "x", "d"})));
  scene.run("d['x'] = y");
  EXPECT_TRUE(tree.holds(scene.roots({"y", "x", "d"})));
  EXPECT_FALSE(tree.holds(scene.roots({"x", "y", "d"})));
  EXPECT_EQ(tree.tree().explain(scene.roots({"x", "y", "d"})), "L[0] is not L[2]['x']");
}

TEST(Guards, TypeVersion) {
  Scene scene("class A:\n  x = 1\nA.x");
  PyTypeObject* type = reinterpret_cast<PyTypeObject*>(scene.at("A"));
  ASSERT_TRUE(_PyType_Lookup(type, text_object("x").get()));
  GuardSet guards;
  guards.add(guards.origins().root(OriginKind::Local), GuardKind::TypeVersion, nullptr, type->tp_version_tag);
  Checked tree(std::move(guards));
  EXPECT_TRUE(tree.holds(scene.roots({"A"})));
  scene.run("A.x = 2; A.x");
  EXPECT_FALSE(tree.holds(scene.roots({"A"})));
  EXPECT_EQ(tree.tree().explain(scene.roots({"A"})), "type L[0] changed");
}

// A tag that changed says nothing: the attribute is looked up, and the region still fits.
TEST(Guards, TypeAttributesAreLookedUpAfterOtherChanges) {
  Scene scene("class A:\n  def f(self): pass\nf = A.f");
  GuardSet guards;
  OriginTable& origins = guards.origins();
  const OriginId attribute =
      origins.child(origins.root(OriginKind::Constant, 0, scene.at("A")), OriginKind::TypeAttr, text_object("f").get());
  guards.add(attribute, GuardKind::Is, scene.at("f"));
  Checked tree(std::move(guards));
  EXPECT_TRUE(tree.holds(scene.roots({})));
  scene.run("A.other = 1");
  EXPECT_TRUE(tree.holds(scene.roots({})));
  scene.run("A.f = lambda self: 1");
  EXPECT_FALSE(tree.holds(scene.roots({})));
  scene.run("A.f = f");
  EXPECT_TRUE(tree.holds(scene.roots({})));
}

TEST(Guards, ADeadObjectNeverMatchesAgain) {
  Scene scene("class A: pass\na = A()");
  GuardSet guards;
  guards.add(guards.origins().root(OriginKind::Local), GuardKind::Is, scene.at("a"));
  Checked tree(std::move(guards));
  EXPECT_TRUE(tree.holds(scene.roots({"a"})));
  PyObject* address = scene.at("a");
  const Py_ssize_t count = Py_REFCNT(address);
  EXPECT_EQ(count, 1) << "the tree keeps no reference";
  scene.run("del a\nb = [A() for _ in range(64)]");  // one of them takes the free place
  for (Py_ssize_t i = 0; i < 64; ++i) {
    PyObject* object = PyList_GET_ITEM(scene.at("b"), i);
    Roots roots;
    roots.locals = &object;
    EXPECT_FALSE(tree.holds(roots)) << (object == address);
  }
}

TEST(Guards, TheTreeKeepsModulesAndClassesAlive_Not) {
  Scene scene(
      "import weakref\nclass A: pass\nclass M: pass\na = A(); seen = []\n"
      "a.m = M(); weakref.finalize(a.m, seen.append, 'm'); weakref.finalize(A, seen.append, 'A')");
  GuardSet guards;
  OriginTable& origins = guards.origins();
  guards.add(origins.root(OriginKind::Local), GuardKind::TypeIs, scene.at("A"));
  const OriginId m = item(origins, origins.child(origins.root(OriginKind::Local), OriginKind::InstanceDict), "m");
  guards.add(m, GuardKind::Is, scene.eval("a.m").get());
  guards.add(origins.root(OriginKind::Constant, 0, scene.at("A")), GuardKind::TypeIs,
             reinterpret_cast<PyObject*>(&PyType_Type));
  Checked tree(std::move(guards));
  EXPECT_TRUE(tree.holds(scene.roots({"a"})));
  scene.run("del a, A\nimport gc; gc.collect()");
  EXPECT_EQ(PyList_GET_SIZE(scene.at("seen")), 2);
}

TEST(Guards, WrongOperandsAreInternalErrors) {
  Scene scene("class A: pass");
  auto tree_of = [&](GuardKind kind, PyObject* operand) {
    GuardSet guards;
    guards.add(guards.origins().root(OriginKind::Local), kind, operand);
    GuardTree tree(std::move(guards), {}, 0, nullptr);
  };
  EXPECT_ANY_THROW(tree_of(GuardKind::Equals, scene.at("A")));
  EXPECT_ANY_THROW(tree_of(GuardKind::TypeIs, Py_None));
  EXPECT_ANY_THROW(tree_of(GuardKind::HasKey, scene.eval("[1]").get()));
  EXPECT_ANY_THROW(tree_of(GuardKind::SetIs, scene.eval("['a']").get()));
  EXPECT_ANY_THROW(tree_of(GuardKind::KeysAre, scene.eval("['a']").get()));
  EXPECT_FALSE(PyErr_Occurred());
}

TEST(Guards, ClassesAndFunctionsInASetAreToldByIdentity) {
  Scene scene(
      "class A: pass\nclass B: pass\ndef f(): pass\ns = {A, f, 1}; t = {1, f, A}; u = {B, f, 1}; v = {A, f, 1, 2}");
  GuardSet guards;
  guards.add(guards.origins().root(OriginKind::Local), GuardKind::SetIs, scene.eval("frozenset(s)").get());
  Checked tree(std::move(guards));
  EXPECT_TRUE(tree.holds(scene.roots({"s"})));
  EXPECT_TRUE(tree.holds(scene.roots({"t"})));
  EXPECT_FALSE(tree.holds(scene.roots({"u"})));
  EXPECT_FALSE(tree.holds(scene.roots({"v"})));
}

TEST(Guards, ConstantsAreComparedExactly) {
  Scene scene;
  auto equal = [&](const char* a, const char* b) { return constants_equal(scene.eval(a).get(), scene.eval(b).get()); };
  EXPECT_TRUE(equal("10**30", "10**30"));
  EXPECT_TRUE(equal("1e400 - 1e400", "1e400 - 1e400"));
  EXPECT_TRUE(equal("complex(1, -0.0)", "complex(1, -0.0)"));
  EXPECT_FALSE(equal("complex(1, -0.0)", "complex(1, 0.0)"));
  EXPECT_FALSE(equal("1", "True"));
  EXPECT_FALSE(equal("(1,)", "(1.0,)"));
  EXPECT_FALSE(equal("'a'", "b'a'"));
  EXPECT_FALSE(is_guardable_constant(scene.eval("[1]").get()));
  EXPECT_FALSE(is_guardable_constant(scene.eval("(1, [])").get()));
  EXPECT_FALSE(is_guardable_constant(scene.eval("type('I', (int,), {})(3)").get()));
}

}  // namespace

}  // namespace graphlift::guards
