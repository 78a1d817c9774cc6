// Owns: tests of arenas: where results lie, which ones do, and what becomes of an arena that somebody still refers to.
#include "backends/reference/arena.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/library.h>

#include <random>
#include <set>

#include "planned.h"

namespace graphlift::reference {
namespace arenas {

void expect_apart(const std::vector<ArenaSpan>& spans, const ArenaPlaces& places) {
  ASSERT_EQ(places.begins.size(), spans.size());
  for (size_t i = 0; i < spans.size(); ++i) {
    EXPECT_EQ(places.begins[i] % 64, 0);
    EXPECT_LE(places.begins[i] + spans[i].bytes, places.bytes);
    for (size_t j = 0; j < i; ++j) {
      const bool together = spans[i].first <= spans[j].last && spans[j].first <= spans[i].last;
      const bool apart = places.begins[i] + spans[i].bytes <= places.begins[j] ||
                         places.begins[j] + spans[j].bytes <= places.begins[i];
      EXPECT_TRUE(!together || apart) << i << " and " << j;
    }
  }
}

TEST(ArenaPlaces, MemoryIsUsedAgain) {
  const std::vector<ArenaSpan> spans = {{100, 0, 1}, {100, 1, 2}, {100, 2, 3}, {64, 3, 4}};
  const ArenaPlaces places = place_spans(spans, 64);
  expect_apart(spans, places);
  EXPECT_EQ(places.bytes, 256) << "two of them at a time";
}

TEST(ArenaPlaces, AnySpansLieApart) {
  std::mt19937 random(1);
  for (int round = 0; round < 200; ++round) {
    std::vector<ArenaSpan> spans;
    for (int i = 0; i < 30; ++i) {
      const int first = static_cast<int>(random() % 40);
      spans.push_back({1 + static_cast<int64_t>(random() % 1000), first, first + static_cast<int>(random() % 8)});
    }
    expect_apart(spans, place_spans(spans, 64));
  }
}

// Adds its arguments up, in the memory that it is given.
class Sum final : public NativeCall {
 public:
  bool fills(size_t) const override { return true; }
  void run(const at::Tensor* const* inputs, at::Tensor* outputs, std::span<const int64_t>) const override {
    given.insert(outputs[0].defined() ? outputs[0].const_data_ptr() : nullptr);
    if (!outputs[0].defined()) outputs[0] = at::empty_like(*inputs[0]);
    outputs[0].copy_(*inputs[0] + *inputs[1]);
  }
  static inline std::set<const void*> given;
};

// Sums are native, all else is torch's.
std::unique_ptr<NativeCall> sums(const ir::Node& node) {
  return node.op.str() == "aten::add.Tensor" ? std::make_unique<Sum>() : nullptr;
}
uint64_t planned(const std::string& text, bool arena = true) { return reference::planned(text, sums, arena); }

const std::string kInput = "%0: f32[8]{1} cpu = input x\n";
const std::string kSum = "%1: f32[8]{1} cpu = aten::add.Tensor(%0, %0, 1)\n";

TEST(ArenaPlan, WhatLivesAndDiesInside) {
  const std::string two = kInput + kSum + "%2: f32[8]{1} cpu = aten::add.Tensor(%1, %0, 1)\nreturn (%2)\n";
  EXPECT_EQ(planned(two), 1u);
  EXPECT_EQ(planned(two, false), 0u);
  EXPECT_EQ(planned(kInput + kSum + "%2: f32[8]{1} cpu = aten::exp.default(%1)\nreturn (%2)\n"), 1u);
  EXPECT_EQ(planned(kInput + kSum +
                    "%2: f32[2, 4]{4, 1} cpu = aten::view.default(%1, [2, 4])\n"
                    "%3: f32[2, 4]{4, 1} cpu = aten::exp.default(%2)\nreturn (%3)\n"),
            1u);
}

TEST(ArenaPlan, NotWhatMayBeReferredToLater) {
  EXPECT_EQ(planned(kInput + kSum + "return (%1)\n"), 0u) << "an output";
  EXPECT_EQ(planned(kInput + kSum + "%2: f32[2, 4]{4, 1} cpu = aten::view.default(%1, [2, 4])\nreturn (%2)\n"), 0u)
      << "a view that is an output";
  EXPECT_EQ(planned(kInput + kSum + "%2: f32[8]{1} cpu = aten::type_as.default(%1, %0)\nreturn (%2)\n"), 0u)
      << "an operator that may answer with its argument";
  EXPECT_EQ(planned(kInput + kSum +
                    "%2: (f32[4]{1} cpu, f32[4]{1} cpu) = aten::unsafe_split.Tensor(%1, 4, 0)\n"
                    "%3: f32[4]{1} cpu = aten::exp.default(%2.0)\nreturn (%3)\n"),
            0u)
      << "one whose schema hides that it answers with views";
  EXPECT_EQ(planned(kInput + kSum + "%2: f32[8]{1} cpu = aten::exp_.default(%1)\nreturn (%2)\n"), 0u)
      << "one that writes";
}

TEST(ArenaPlan, NotWhatVariesOrIsLarge) {
  EXPECT_EQ(planned("%0: f32[s0]{1} cpu = input x\n%1: f32[s0]{1} cpu = aten::add.Tensor(%0, %0, 1)\n"
                    "%2: f32[s0]{1} cpu = aten::exp.default(%1)\nreturn (%2)\n"),
            0u);
  EXPECT_EQ(planned("%0: f32[16384]{1} cpu = input x\n%1: f32[16384]{1} cpu = aten::add.Tensor(%0, %0, 1)\n"
                    "%2: f32[16384]{1} cpu = aten::exp.default(%1)\nreturn (%2)\n"),
            0u);
}

std::vector<ir::TensorType> types_of(const std::string& text) {
  std::vector<ir::TensorType> types;
  const auto graph = ir::parse(text);
  for (const ir::Node* input : graph->inputs()) types.push_back(*input->outputs[0]);
  return types;
}

TEST(Arena, IsNotUsedAgainWhileSomebodyRefersToIt) {
  ArenaPool pool;
  pool.plan(types_of(kInput + "return (%0)\n"), {{32, 0, 1}});
  auto arena = pool.take();
  const void* memory = arena->at(0).const_data_ptr();
  pool.give_back(std::move(arena));
  arena = pool.take();
  EXPECT_EQ(arena->at(0).const_data_ptr(), memory) << "kept";
  at::Tensor view = arena->at(0).view({2, 4});
  view.fill_(3);
  pool.give_back(std::move(arena));
  arena = pool.take();
  EXPECT_NE(arena->at(0).const_data_ptr(), memory);
  arena->at(0).fill_(7);
  EXPECT_EQ(view.sum().item<float>(), 24) << "its memory lives on";
  EXPECT_FALSE(arena->at(0).is_inference());
}

TEST(Arena, ServesRunsSideBySide) {
  ArenaPool pool;
  pool.plan(types_of(kInput + "return (%0)\n"), {{32, 0, 1}});
  auto a = pool.take(), b = pool.take();
  EXPECT_NE(a->at(0).const_data_ptr(), b->at(0).const_data_ptr());
  pool.give_back(std::move(a));
  pool.give_back(std::move(b));
}

TEST(Arena, StepsGetTheirMemoryFromIt) {
  const auto graph = ir::parse(kInput + kSum +
                               "%2: f32[8]{1} cpu = aten::add.Tensor(%1, %0, 1)\n"
                               "%3: f32[8]{1} cpu = aten::add.Tensor(%2, %0, 1)\nreturn (%3)\n");
  const Program program(*graph, {}, sums, *graph, SIZE_MAX, true);
  Sum::given.clear();
  for (int i = 1; i < 4; ++i) {
    at::Tensor input = at::full({8}, i), output;
    program.run(&input, nullptr, &output);
    EXPECT_TRUE(output.equal(at::full({8}, 4 * i)));
  }
  EXPECT_EQ(Sum::given.size(), 3u) << "two places in one arena, and fresh memory of the output";
  EXPECT_TRUE(Sum::given.contains(nullptr));
}

// Answers with its argument, which it must not.
TEST(Arena, AnOperatorThatAnswersWithItsArgumentIsNoticed) {
  const auto graph = ir::parse(kInput + kSum +
                               "%2: f32[8]{1} cpu = aten::nan_to_num.default(%1, none, none, none)\n"
                               "%3: f32[8]{1} cpu = aten::add.Tensor(%2, %0, 1)\n"
                               "%4: f32[8]{1} cpu = aten::add.Tensor(%3, %2, 1)\nreturn (%4)\n");
  static auto* const library = new torch::Library(torch::Library::IMPL, "aten", c10::DispatchKey::CPU, __FILE__, 0);
  library->impl("nan_to_num", [](const at::Tensor& self, std::optional<double>, std::optional<double>,
                                 std::optional<double>) { return self; });
  const Program program(*graph, {}, sums, *graph, SIZE_MAX, true);
  for (int i = 1; i < 4; ++i) {
    at::Tensor input = at::full({8}, i), output;
    program.run(&input, nullptr, &output);
    EXPECT_TRUE(output.equal(at::full({8}, 5 * i))) << output;
  }
}

}  // namespace arenas
}  // namespace graphlift::reference
