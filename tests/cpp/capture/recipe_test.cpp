// Owns: tests of recipes made by hand: each node and effect kind that snapshots of plain Python objects don't reach,
// the ready results, the text, and that a failure at any allocation leaves nothing behind.
#include "rebuild.h"

namespace graphlift::capture::test {
namespace {

int add(Recipe* recipe, RecipeNode node) {
  recipe->nodes.push_back(std::move(node));
  return static_cast<int>(recipe->nodes.size()) - 1;
}

TEST(Recipe, TensorsFetchesAndSymbols) {
  Ref a = Ref::steal(PyList_New(0)), b = Ref::steal(PyDict_New());
  Recipe recipe;
  const int tensor = add(&recipe, {NodeKind::Tensor, Ref(), 0});
  const int fetched = add(&recipe, {NodeKind::Fetched, Ref(), 0});
  RecipeNode symbol{NodeKind::Symbol};
  symbol.sym = ir::Sym::symbol(1) * ir::Sym(3) + ir::Sym(1);
  symbol.index = 2;
  const int number = add(&recipe, symbol);
  RecipeNode tuple{NodeKind::Tuple};
  tuple.children = {tensor, fetched, number, tensor};
  recipe.result = add(&recipe, tuple);
  PyObject *fetches[] = {a.get()}, *tensors[] = {b.get()};
  const int64_t symbols[] = {7, 5};
  std::vector<Ref> made;
  ASSERT_TRUE(run_recipe(recipe, fetches, tensors, symbols, &made));
  PyObject* result = made[static_cast<size_t>(recipe.result)].get();
  EXPECT_EQ(PyTuple_GET_ITEM(result, 0), b.get());
  EXPECT_EQ(PyTuple_GET_ITEM(result, 1), a.get());
  EXPECT_EQ(PyLong_AsLong(PyTuple_GET_ITEM(result, 2)), 16);
  EXPECT_EQ(PyTuple_GET_ITEM(result, 3), b.get());
  const Ref* storage = made.data();
  ASSERT_TRUE(run_recipe(recipe, fetches, tensors, symbols, &made));
  EXPECT_EQ(made.data(), storage);
}

TEST(Recipe, ReadyResults) {
  Recipe recipe;
  EXPECT_FALSE(ready_result(recipe));
  add(&recipe, {NodeKind::Tensor, Ref(), 2});
  recipe.result = 0;
  ASSERT_TRUE(ready_result(recipe));
  PyObject* tensors[] = {nullptr, nullptr, Py_None};
  EXPECT_EQ(ready_result(recipe)->get(nullptr, tensors), Py_None);
  recipe.result = add(&recipe, {NodeKind::Constant, Ref::borrow(Py_True)});
  EXPECT_EQ(ready_result(recipe)->get(nullptr, tensors), Py_True);
  recipe.nodes[0].state = {1, 1};
  recipe.result = 0;
  EXPECT_FALSE(ready_result(recipe));
  recipe.nodes[0].state.clear();
  recipe.effects.push_back({EffectKind::DelKey, {0, 1}});
  EXPECT_FALSE(ready_result(recipe));
}

TEST(Recipe, TextNamesEveryNodeAndEffect) {
  Recipe recipe;
  add(&recipe, {NodeKind::Fetched, Ref(), 3});
  add(&recipe, {NodeKind::Constant, Ref::steal(PyUnicode_FromString("key"))});
  recipe.effects.push_back({EffectKind::SetKey, {0, 1, 1}});
  recipe.locals = {Recipe::kKeep, Recipe::kEmpty, 1};
  recipe.result = 1;
  EXPECT_EQ(recipe.text(),
            "%0 = Fetched() #3\n%1 = Constant() 'key'\nSetKey(%0, %1, %1)\nlocals: keep, -, %1\nresult: %1\n");
}

TEST(Recipe, TraverseVisitsWhatItHolds) {
  Recipe recipe;
  add(&recipe, {NodeKind::Constant, Ref::borrow(Py_Ellipsis)});
  add(&recipe, {NodeKind::List});
  int count = 0;
  recipe.traverse(
      [](PyObject* object, void* arg) {
        EXPECT_EQ(object, Py_Ellipsis);
        ++*static_cast<int*>(arg);
        return 0;
      },
      &count);
  EXPECT_EQ(count, 1);
}

// Torch's tensors where torch is there: they are outputs of the graph, hashable by identity, and may carry attributes.
class RecipeWithTorch : public testing::Test {
 protected:
  void SetUp() override {
    Ref torch = Ref::steal(PyImport_ImportModule("torch"));
    if (!torch) {
      PyErr_Clear();
      GTEST_SKIP() << "no torch";
    }
    python.run("import torch");
  }
  Python python;
};

TEST_F(RecipeWithTorch, FreshTensorsAreOutputsEachOnce) {
  python.run(
      "t = torch.zeros(2); u = torch.ones(2); x = (t, [u, t], {t: u}); real_t = torch.zeros(3); real_u = "
      "torch.ones(3)");
  Session session;
  session.tensors = {python["real_t"], python["real_u"]};
  Ref made = session.rebuild(python["x"]);
  ASSERT_TRUE(made) << session.taken.unrebuildable;
  EXPECT_EQ(session.taken.tensor_outputs, (std::vector<PyObject*>{python["t"], python["u"]}));
  python.set("y", made.get());
  EXPECT_TRUE(python.holds("y[0] is real_t and y[1][0] is real_u and y[1][1] is real_t and y[2][real_t] is real_u"));
}

TEST_F(RecipeWithTorch, StandInsOfPrimalsAreFetched) {
  python.run("stand_in = torch.zeros(2); real = torch.zeros(2); x = [stand_in]");
  Session session;
  session.tracer->primals[python["stand_in"]] = 0;
  session.capture.primal_origins.push_back(session.origin(python["real"]));
  Ref made = session.rebuild(python["x"]);
  ASSERT_TRUE(made);
  EXPECT_EQ(PyList_GET_ITEM(made.get(), 0), python["real"]);
  EXPECT_EQ(session.taken.fetches, session.capture.primal_origins);
  EXPECT_TRUE(session.taken.tensor_outputs.empty());
}

TEST_F(RecipeWithTorch, AttributesOfFreshTensorsComeAlong) {
  python.run("t = torch.zeros(2); t.note = [t]; real = torch.zeros(2)");
  Session session;
  session.tensors = {python["real"]};
  ASSERT_TRUE(session.rebuild(python["t"]));
  EXPECT_FALSE(ready_result(session.taken.recipe));
  EXPECT_TRUE(python.holds("real.note[0] is real"));
}

TEST_F(RecipeWithTorch, ResultsWithNamesAndSizes) {
  python.run(R"(
x = [torch.zeros(2, 2).max(0), torch.Size([1, 2])]
import types
values, indices = torch.ones(2), torch.zeros(2)
)");
  Session session;
  session.tensors = {python["values"], python["indices"]};
  Ref made = session.rebuild(python["x"]);
  ASSERT_TRUE(made) << session.taken.unrebuildable;
  python.set("y", made.get());
  EXPECT_TRUE(
      python.holds("type(y[0]) is torch.return_types.max and y[0].values is values and y[1] == torch.Size([1, 2])"));
  EXPECT_TRUE(python.holds("type(y[1]) is torch.Size"));
}

TEST_F(RecipeWithTorch, SymbolicInts) {
  python.run("s = torch.SymInt(object()); x = [s, {'n': s}]");
  Session session;
  session.tracer->syms.emplace(python["s"], ir::Sym::symbol(0) + ir::Sym(1));
  session.symbols = {41};
  Ref made = session.rebuild(python["x"]);
  ASSERT_TRUE(made) << session.taken.unrebuildable;
  python.set("y", made.get());
  EXPECT_TRUE(python.holds("y == [42, {'n': 42}]"));
}

TEST_F(RecipeWithTorch, ModulesMadeFresh) {
  python.run(
      "m = torch.nn.Sequential(torch.nn.Linear(2, 2, bias=False), torch.nn.ReLU()); w = "
      "torch.nn.Parameter(torch.ones(2, 2))");
  Session session;
  session.tensors = {python["w"]};
  Ref made = session.rebuild(python["m"]);
  ASSERT_TRUE(made) << session.taken.unrebuildable;
  python.set("y", made.get());
  EXPECT_TRUE(python.holds("type(y) is torch.nn.Sequential and y[0].weight is w and y is not m"));
  EXPECT_TRUE(python.holds("torch.equal(y(torch.ones(1, 2)), torch.full((1, 2), 2.))"));
}

TEST(Breaks, AreWordedFromTheTable) {
  Session session;
  EXPECT_FALSE(break_here(session.capture, "unknown_callable", "cv2.resize"));
  ASSERT_TRUE(session.capture.pending);
  EXPECT_TRUE(PyErr_Occurred());
  PyErr_Clear();
  EXPECT_EQ(break_status(session.capture, "user_requested"), -1);
  EXPECT_TRUE(PyErr_Occurred());
  EXPECT_FALSE(PyErr_ExceptionMatches(PyExc_Exception));
  PyErr_Clear();
  EXPECT_EQ(session.capture.pending->row, find_break("unknown_callable"));
  EXPECT_EQ(session.capture.pending->sentence(), "call of cv2.resize, which is not known to be safe while capturing");
  EXPECT_NE(session.capture.pending->message().find("Hint: "), std::string::npos);
  EXPECT_EQ(find_break("nothing"), nullptr);
  EXPECT_GT(break_table().size(), 20u);
}

}  // namespace
}  // namespace graphlift::capture::test
