// Owns: tests of what is planned in whole graphs: random ones give the results that they give without an arena.
#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/library.h>

#include <random>

#include "planned.h"

namespace graphlift::reference {
namespace arena_plans {

// Memory of a result must not be memory of an argument.
class Sum final : public NativeCall {
 public:
  bool fills(size_t) const override { return true; }
  void run(const at::Tensor* const* inputs, at::Tensor* outputs, std::span<const int64_t>) const override {
    if (!outputs[0].defined()) outputs[0] = at::empty_like(*inputs[0]);
    for (int i = 0; i < 2; ++i) EXPECT_NE(outputs[0].const_data_ptr(), inputs[i]->const_data_ptr());
    EXPECT_EQ(reinterpret_cast<uintptr_t>(outputs[0].const_data_ptr()) % 64, 0u);
    at::add_out(outputs[0], *inputs[0], *inputs[1]);
  }
};

// Writes its result over its first argument, as kernels do where the graph allows it.
class SumInPlace final : public NativeCall {
 public:
  bool writes_inputs() const override { return true; }
  void run(const at::Tensor* const* inputs, at::Tensor* outputs, std::span<const int64_t>) const override {
    EXPECT_FALSE(outputs[0].defined());
    outputs[0] = to_be_written(*inputs[0]);
    outputs[0].add_(*inputs[1]);
  }
};

// Sums are native, all else is torch's.
std::unique_ptr<NativeCall> sums(const ir::Node& node) {
  return node.op.str() == "aten::add.Tensor" ? std::make_unique<Sum>() : nullptr;
}
std::unique_ptr<NativeCall> sums_in_place(const ir::Node& node) {
  return node.op.str() == "aten::add.Tensor" ? std::make_unique<SumInPlace>() : nullptr;
}

const std::string kSum = "%0: f32[8]{1} cpu = input x\n%1: f32[8]{1} cpu = aten::add.Tensor(%0, %0, 1)\n";
const std::string kRead = "%2: f32[8]{1} cpu = aten::neg.default(%1)\nreturn (%2)\n";

TEST(ArenaPlan, NotWhatIsWrittenIntoAnInput) {
  EXPECT_EQ(planned(kSum + kRead, sums), 1u);
  EXPECT_EQ(planned(kSum + kRead, sums_in_place), 0u);
}

TEST(ArenaPlan, NotWhatAnotherLibraryReads) {
  static auto* const library =
      new torch::Library(torch::Library::DEF, "graphlift_arena_plan", std::nullopt, __FILE__, 0);
  library->def("keep(Tensor x) -> Tensor");
  auto kernel = [](const at::Tensor& x) { return x.neg(); };
  library->impl("keep", torch::dispatch(c10::DispatchKey::CPU, kernel));  // else it would be a composite one
  const std::string keep = "graphlift_arena_plan::keep.default";
  EXPECT_EQ(planned(kSum + "%2: f32[8]{1} cpu = " + keep + "(%1)\nreturn (%2)\n", sums), 0u);
  EXPECT_EQ(planned(kSum + "%2: f32[2, 4]{4, 1} cpu = aten::view.default(%1, [2, 4])\n%3: f32[2, 4]{4, 1} cpu = " +
                        keep + "(%2)\nreturn (%3)\n",
                    sums),
            0u)
      << "a view of it";
}

// Sums, calls of torch's and views of views; some of them leave, from the middle as well.
std::string random_graph(std::mt19937* random) {
  auto below = [&](size_t n) { return static_cast<size_t>((*random)() % n); };
  struct Value {
    std::string name;
    bool flat;
  };
  std::vector<Value> values = {{"%0", true}};
  std::string text = "%0: f32[24]{1} cpu = input x\n", outputs;
  for (int i = 1; i <= 20; ++i) {
    const Value value = values[values.size() - 1 - below(std::min<size_t>(values.size(), 6))];
    const std::string name = "%" + std::to_string(i);
    const size_t kind = below(6);
    const bool flat = value.flat != (kind == 0);
    text += name + (flat ? ": f32[24]{1}" : ": f32[4, 6]{6, 1}") + " cpu = ";
    if (kind == 0) text += "aten::view.default(" + value.name + (flat ? ", [24])\n" : ", [4, 6])\n");
    if (kind == 1) text += "aten::neg.default(" + value.name + ")\n";
    if (kind >= 2) {
      std::string other = value.name;
      for (const Value& candidate : values)
        if (candidate.flat == value.flat && below(3) == 0) other = candidate.name;
      text += "aten::add.Tensor(" + value.name + ", " + other + ", 1)\n";
    }
    values.push_back({name, flat});
    if (i == 20 || below(6) == 0) outputs += (outputs.empty() ? "" : ", ") + name;
  }
  return text + "return (" + outputs + ")\n";
}

TEST(ArenaPlan, RandomGraphsGiveTheSameResults) {
  std::mt19937 random(1);
  const uint64_t before = backend::counters().in_arenas;
  for (int round = 0; round < 150; ++round) {
    const std::string text = random_graph(&random);
    const auto graph = ir::parse(text);
    ASSERT_EQ(ir::verify(*graph), "") << text;
    const Program with(*graph, {}, sums, *graph, SIZE_MAX, true), without(*graph, {}, sums, *graph);
    std::vector<std::vector<at::Tensor>> kept, expected;
    for (int run = 0; run < 3; ++run) {
      const at::Tensor x = at::arange(24, at::kFloat) + run;
      for (const Program* program : {&with, &without}) {
        at::Tensor input = x;
        std::vector<at::Tensor> outputs(graph->outputs().size());
        program->run(&input, nullptr, outputs.data());
        (program == &with ? kept : expected).push_back(std::move(outputs));
      }
    }
    for (size_t run = 0; run < kept.size(); ++run)  // after all runs: none writes over an earlier one's results
      for (size_t i = 0; i < kept[run].size(); ++i) EXPECT_TRUE(kept[run][i].equal(expected[run][i])) << text;
  }
  EXPECT_GT(backend::counters().in_arenas - before, 500u);
}

}  // namespace arena_plans
}  // namespace graphlift::reference
