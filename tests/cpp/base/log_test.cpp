// Named logs: settings, and where lines go.
#include "base/log.h"

#include <gtest/gtest.h>

#include "base/ref.h"
#include "base/text.h"

namespace graphlift {

namespace {

class Log : public testing::Test {
 protected:
  void SetUp() override { clear(); }
  void TearDown() override { clear(); }
  static void clear() {
    reset_logs();
    set_log_emitter(nullptr);
  }
  // Names of the logs that are on, with + for detail.
  static std::string on() {
    std::string names;
    for (size_t i = 0; i < kArtifactNames.size(); ++i) {
      const LogLevel level = log_level(static_cast<Artifact>(i));
      if (level == LogLevel::Off) continue;
      names += cat(names.empty() ? "" : ",", level == LogLevel::Debug ? "+" : "", kArtifactNames[i]);
    }
    return names;
  }
};

TEST_F(Log, Settings) {
  EXPECT_EQ(on(), "");
  EXPECT_EQ(set_logs("graph_breaks, +recompiles,,guards "), "");
  EXPECT_EQ(on(), "graph_breaks,+recompiles,guards");
  EXPECT_EQ(set_logs("-recompiles"), "");
  EXPECT_EQ(on(), "graph_breaks,guards");
  EXPECT_TRUE(log_on(Artifact::GraphBreaks));
  EXPECT_FALSE(log_verbose(Artifact::GraphBreaks));
  EXPECT_EQ(set_logs("-all"), "");
  EXPECT_EQ(on(), "");
  EXPECT_EQ(set_logs("+all,-bytecode"), "");
  EXPECT_EQ(on(), "+graph_breaks,+recompiles,+guards,+graph,+graph_code,+aot_graphs,+output_code,+perf_hints");
}

TEST_F(Log, AnUnknownNameChangesNothingAndListsTheValidOnes) {
  const std::string error = set_logs("guards,grahp");
  EXPECT_NE(error.find("\"grahp\""), error.npos);
  for (std::string_view name : kArtifactNames) EXPECT_NE(error.find(name), error.npos);
  EXPECT_EQ(on(), "");
}

TEST_F(Log, TheTableNamesAndExplainsAll) {
  ASSERT_EQ(log_table().size(), kArtifactNames.size());
  for (size_t i = 0; i < kArtifactNames.size(); ++i) {
    EXPECT_EQ(log_table()[i].first, kArtifactNames[i]);
    EXPECT_FALSE(log_table()[i].second.empty());
  }
}

TEST_F(Log, LinesGoToTheEmitter) {
  Ref names = Ref::steal(PyDict_New());
  PyDict_SetItemString(names.get(), "__builtins__", PyEval_GetBuiltins());
  Ref done = Ref::steal(PyRun_String("seen = []\ndef emit(artifact, text): seen.append((artifact, text))",
                                     Py_file_input, names.get(), names.get()));
  ASSERT_TRUE(done);
  set_log_emitter(PyDict_GetItemString(names.get(), "emit"));
  log(Artifact::Guards, "off");
  set_logs("guards");
  PyErr_SetString(PyExc_ValueError, "pending");
  log(Artifact::Guards, [] { return std::string("two\nlines"); });
  EXPECT_TRUE(PyErr_ExceptionMatches(PyExc_ValueError)) << "a pending error stays";
  PyErr_Clear();
  Ref expected = Ref::steal(PyRun_String("[('guards', 'two\\nlines')]", Py_eval_input, names.get(), names.get()));
  EXPECT_EQ(PyObject_RichCompareBool(PyDict_GetItemString(names.get(), "seen"), expected.get(), Py_EQ), 1);
}

TEST_F(Log, WithoutAnEmitterLinesGoToStderr) {
  set_logs("recompiles");
  testing::internal::CaptureStderr();
  log(Artifact::Recompiles, "words");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "[graphlift.recompiles] words\n");
}

TEST(Text, Pieces) {
  EXPECT_EQ(cat("a", 1, 'c', std::string("d")), "a1cd");
  EXPECT_EQ(join(std::vector<std::string>{"a", "b"}, ", "), "a, b");
  EXPECT_EQ(join(std::vector<int>{1, 2}, "+", [](int i) { return i * 2; }), "2+4");
  EXPECT_EQ(fill("{}[[]] is {}", "x", "'k'"), "x['k'] is x");
}

}  // namespace

}  // namespace graphlift
