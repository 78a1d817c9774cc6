// Owns: tests of effects: what was changed on outside objects is written back, with the fewest effects, and changed
// objects are guarded to be distinct from others.
#include "rebuild.h"

namespace graphlift::capture::test {
namespace {

using guards::GuardKind;

struct ShadowCase {
  const char* name;
  const char* outside;  // expression of the outside object
  const char* change;   // statement on `s`, its shadow
  std::vector<EffectKind> effects;
};

const ShadowCase kShadows[] = {
    {"unchanged_list", "[1, [2]]", "pass", {}},
    {"append", "[1, 2]", "s.append(3)", {EffectKind::ExtendList}},
    {"extend", "[1, 2]", "s += [[3], 4, 5]", {EffectKind::ExtendList}},
    {"insert", "[1, 2]", "s.insert(0, 3)", {EffectKind::ReplaceList}},
    {"pop", "[1, 2]", "s.pop()", {EffectKind::ReplaceList}},
    {"set_item", "[1, [], 3]", "s[0] = 7", {EffectKind::ReplaceList}},
    {"clear_list", "[1]", "s.clear()", {EffectKind::ReplaceList}},
    {"unchanged_dict", "{'a': 1, 'b': []}", "pass", {}},
    {"write_key", "{'a': 1, 'b': 2}", "s['a'] = 3", {EffectKind::SetKey}},
    {"new_key", "{'a': 1}", "s['b'] = [2]", {EffectKind::SetKey}},
    {"delete_key", "{'a': 1, 'b': 2}", "del s['a']", {EffectKind::DelKey}},
    {"reinsert", "{'a': 1, 'b': 2}", "s['a'] = s.pop('a')", {EffectKind::DelKey, EffectKind::SetKey}},
    {"clear_dict", "{i: i for i in range(20)}", "s.clear(); s[3] = 4", {EffectKind::ReplaceDict}},
    {"update",
     "{'a': 1, 'b': 2, 'c': 3}",
     "del s['b']; s.update(c=5, d=6, b=7)",
     {EffectKind::DelKey, EffectKind::SetKey, EffectKind::SetKey, EffectKind::SetKey}},
    {"ordered_move",
     "collections.OrderedDict(a=1, b=2, c=3)",
     "s.move_to_end('a')",
     {EffectKind::DelKey, EffectKind::SetKey}},
    {"ordered_move_to_start",
     "collections.OrderedDict(a=1, b=2, c=3)",
     "s.move_to_end('c', last=False)",
     {EffectKind::DelKey, EffectKind::DelKey, EffectKind::SetKey, EffectKind::SetKey}},
    {"ordered_replace",
     "collections.OrderedDict((i, i) for i in range(20))",
     "s.clear(); s[1] = 2",
     {EffectKind::ReplaceOrderedDict}},
    {"default_dict", "collections.defaultdict(list, a=[1])", "s['b']", {EffectKind::SetKey}},
    {"unchanged_set", "{1, 2}", "s.add(1)", {}},
    {"set", "{1, 2}", "s.add(3); s.discard(1)", {EffectKind::ReplaceSet}},
    {"deque", "collections.deque([1, 2], maxlen=3)", "s.append(3); s.append(4)", {EffectKind::ReplaceDeque}},
    {"rotated_deque", "collections.deque([1, 2])", "s.rotate(1)", {EffectKind::ReplaceDeque}},
    {"unchanged_deque", "collections.deque([1, 2])", "s.rotate(2)", {}},
};

class Shadows : public testing::TestWithParam<ShadowCase> {};

TEST_P(Shadows, AreWrittenBack) {
  Python python;
  python.run(kShapeSource);
  python.run(std::string("o = ") + GetParam().outside);
  Session session;
  python.set("s", session.shadow(python["o"]));
  python.run(GetParam().change);
  Ref made = session.rebuild(Py_None);
  ASSERT_TRUE(made) << session.taken.unrebuildable;
  EXPECT_TRUE(python.holds("shape(o) == shape(s)")) << session.taken.recipe.text() << (python.run("print(o, s)"), "");
  EXPECT_TRUE(python.holds("o is not s"));
  std::vector<EffectKind> kinds;
  for (const Effect& effect : session.taken.recipe.effects) kinds.push_back(effect.kind);
  EXPECT_EQ(kinds, GetParam().effects) << session.taken.recipe.text();
}

INSTANTIATE_TEST_SUITE_P(Kinds, Shadows, testing::ValuesIn(kShadows), [](const auto& info) { return info.param.name; });

TEST(SnapshotEffects, RunInProgramOrderAndShareTheirValues) {
  Python python;
  python.run("a = []; b = {}; v = [1]; r = (v,)");
  Session session;
  PyObject* first = session.shadow(python["b"]);
  PyObject* second = session.shadow(python["a"]);
  PyDict_SetItemString(first, "k", python["v"]);
  PyList_Append(second, python["v"]);
  Ref made = session.rebuild(python["r"]);
  ASSERT_TRUE(made);
  python.set("y", made.get());
  EXPECT_TRUE(python.holds("a[0] is b['k'] and y[0] is a[0] and y[0] is not v"));
  EXPECT_EQ(session.taken.recipe.effects[0].kind, EffectKind::SetKey);
  EXPECT_EQ(session.taken.recipe.effects[1].kind, EffectKind::ExtendList);
}

TEST(SnapshotEffects, OverlaysOfDicts) {
  Python python;
  python.run("d = {'a': 1, 'b': 2, 'c': 3}; before = dict(d); value = [4]");
  Session session;
  Outside* outside = session.outside(python["d"]);
  outside->overlay = Ref::steal(PyDict_New());
  PyObject* overlay = outside->overlay.get();
  PyDict_SetItemString(overlay, "never", session.capture.objects.deleted());
  PyDict_SetItemString(overlay, "b", session.capture.objects.deleted());
  PyDict_SetItemString(overlay, "new", python["value"]);
  PyDict_SetItemString(overlay, "a", Py_None);
  outside->reinserted.push_back(Ref::steal(PyUnicode_FromString("a")));
  session.capture.objects.mutated(outside);
  ASSERT_TRUE(session.rebuild(Py_None));
  EXPECT_TRUE(python.holds("list(d.items()) == [('c', 3), ('new', [4]), ('a', None)]"));
  EXPECT_TRUE(python.holds("d['new'] is not value"));
}

TEST(SnapshotEffects, SlotsAndCellsTakeTheirLastValue) {
  Python python;
  python.run(R"(
class S: __slots__ = ('a', 'b')
s = S(); s.a = 1; s.b = 2; A = S.a; B = S.b
def f():
    content = 1
    return lambda: content
cell = f().__closure__[0]
)");
  Session session;
  Outside* instance = session.outside(python["s"]);
  auto field = [&](const char* descriptor, PyObject* value) {
    instance->fields.emplace_back(Ref::borrow(python[descriptor]), Ref::borrow(value));
  };
  field("A", Py_False);
  field("B", nullptr);
  field("A", Py_True);
  session.capture.objects.mutated(instance);
  Outside* cell = session.outside(python["cell"]);
  cell->fields.emplace_back(Ref(), Ref::borrow(Py_True));
  session.capture.objects.mutated(cell);
  ASSERT_TRUE(session.rebuild(Py_None));
  EXPECT_EQ(session.taken.recipe.effects.size(), 3u);
  EXPECT_TRUE(python.holds("s.a is True and not hasattr(s, 'b') and cell.cell_contents is True"));
}

TEST(SnapshotEffects, CallsComeLastInOrder) {
  Python python;
  python.run("import builtins\nlog = []\nappend = log.append\nx = [1]");
  Session session;
  session.outside(python["log"]);
  auto call = [&](PyObject* argument) {
    return std::pair<Ref, std::vector<Ref>>(Ref::borrow(python["append"]), {Ref::borrow(argument)});
  };
  session.capture.deferred_calls.push_back(call(python["x"]));
  session.capture.ambient_calls.push_back(call(Py_None));
  ASSERT_TRUE(session.rebuild(python["x"]));
  EXPECT_EQ(count_effects(session.taken.recipe, EffectKind::Call), 1);
  EXPECT_EQ(count_effects(session.taken.recipe, EffectKind::CallAmbient), 1);
  EXPECT_TRUE(python.holds("log == [[1], None] and log[0] is not x"));
}

TEST(SnapshotEffects, AFailingCallIsThePythonErrorOfTheProgram) {
  Python python;
  python.run("x = int");
  Session session;
  session.capture.deferred_calls.emplace_back(Ref::borrow(python["x"]),
                                              std::vector<Ref>{Ref::steal(PyUnicode_FromString("no number"))});
  EXPECT_FALSE(session.rebuild(Py_None));
  EXPECT_TRUE(PyErr_ExceptionMatches(PyExc_ValueError));
  PyErr_Clear();
}

TEST(SnapshotEffects, AnIteratorOverAChangedListKeepsItsPlace) {
  Python python;
  python.run("o = [1, 2]");
  Session session;
  python.set("s", session.shadow(python["o"]));
  python.run("i = iter(s); next(i); next(i); s.append(3); s.append(4); next(i)");
  Ref made = session.rebuild(python["i"]);
  ASSERT_TRUE(made);
  python.set("y", made.get());
  EXPECT_TRUE(python.holds("list(y) == [4] and o == [1, 2, 3, 4]"));
}

TEST(SnapshotEffects, ChangedObjectsAreGuardedToBeDistinct) {
  Python python;
  python.run("a = []; b = []; c = []; d = {}");
  Session session;
  session.shadow(python["a"]);
  session.outside(python["b"]);
  session.outside(python["c"]);
  session.outside(python["d"]);
  Outside* pinned = session.outside(python["c"]);
  session.capture.guards.add(pinned->origin, GuardKind::Is, python["c"]);
  ASSERT_TRUE(session.rebuild(Py_None));
  // One guard for all: the changed list is none of the other two, whatever is known of those.
  const auto& rows = session.capture.guards.distinct_objects;
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].apart.size(), 1u);
  EXPECT_EQ(rows[0].others.size(), 2u);
  EXPECT_EQ(std::count(rows[0].others.begin(), rows[0].others.end(), pinned->origin), 1);
}

TEST(SnapshotEffects, ObjectsPinnedByIdentityNeedNoGuard) {
  Python python;
  python.run("a = []; b = []");
  Session session;
  session.shadow(python["a"]);
  session.outside(python["b"]);
  for (const char* name : {"a", "b"})
    session.capture.guards.add(session.capture.objects.find(python[name])->origin, GuardKind::Is, python[name]);
  ASSERT_TRUE(session.rebuild(Py_None));
  EXPECT_TRUE(session.capture.guards.distinct_objects.empty());
}

TEST(SnapshotEffects, AnUnrebuildableValueIsNamed) {
  Python python;
  python.run("o = []; g = (i for i in [])");
  Session session;
  PyList_Append(session.shadow(python["o"]), python["g"]);
  EXPECT_FALSE(session.rebuild(Py_None));
  EXPECT_EQ(session.taken.unrebuildable, "generator");
}

}  // namespace
}  // namespace graphlift::capture::test
