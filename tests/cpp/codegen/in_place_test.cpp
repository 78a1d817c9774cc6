// Owns: tests of results that are written into inputs.
#include "backends/codegen/in_place.h"

#include <gtest/gtest.h>

namespace graphlift::codegen {
namespace {

// The targets of all results, kernel by kernel: "0 -1 | 1".
std::string targets(const std::string& text, const std::vector<std::pair<int, int>>& writes) {
  auto graph = ir::parse(text);
  EXPECT_EQ(ir::verify(*graph), "");
  FusedGraph fused = fuse(*graph, {});
  write_in_place(&fused, writes);
  EXPECT_EQ(ir::verify(*fused.graph), "");
  std::string all;
  for (size_t i = 0; i < fused.kernels.size(); ++i) {
    EXPECT_EQ(verify(fused.kernels[i]), "");
    const KernelMemory& memory = fused.memory[i];
    EXPECT_EQ(static_cast<size_t>(memory.buffer_of(memory.results.size())), fused.kernels[i].buffers.size());
    if (i > 0) all += " |";
    for (const auto& result : memory.results) all += (all.empty() ? "" : " ") + std::to_string(result.target);
  }
  return all;
}

constexpr const char* kInputs = "%0: f32[8, 8]{8, 1} cpu = input x\n%1: f32[8, 8]{8, 1} cpu = input y\n";

TEST(InPlace, WhatAKernelReadsAtTheSamePlaces) {
  const std::string add = std::string(kInputs) + "%2: f32[8, 8]{8, 1} cpu = aten::add.Tensor(%0, %1, 1)\nreturn (%2)\n";
  EXPECT_EQ(targets(add, {{0, 0}}), "0");
  EXPECT_EQ(targets(add, {{0, 1}}), "1");
  EXPECT_EQ(targets(add, {}), "-1");
}

TEST(InPlace, WhatItDoesNotRead) {
  EXPECT_EQ(targets(std::string(kInputs) + "%2: f32[8, 8]{8, 1} cpu = aten::exp.default(%0)\nreturn (%2)\n", {{0, 1}}),
            "1");
}

TEST(InPlace, TwoInputsThatChangePlaces) {
  const std::string swap = std::string(kInputs) +
                           "%2: f32[8, 8]{8, 1} cpu = aten::mul.Tensor(%0, 2)\n"
                           "%3: f32[8, 8]{8, 1} cpu = aten::add.Tensor(%1, %0, 1)\nreturn (%3, %2)\n";
  EXPECT_EQ(targets(swap, {{0, 0}, {1, 1}}), "1 0");
}

TEST(InPlace, NotWhatIsReadElsewhereOrOtherwise) {
  const std::string in = kInputs, out = "\nreturn (%3)\n";
  // Turned, reduced, read by a later call, by an earlier one through a view that leaves the graph.
  EXPECT_EQ(targets(in +
                        "%2: f32[8, 8]{1, 8} cpu = aten::t.default(%0)\n"
                        "%3: f32[8, 8]{8, 1} cpu = aten::add.Tensor(%1, %2, 1)" +
                        out,
                    {{0, 0}}),
            "-1");
  EXPECT_EQ(targets(in +
                        "%2: f32[8, 1]{1, 1} cpu = aten::sum.dim_IntList(%0, [1], true, none)\n"
                        "%3: f32[8, 8]{8, 1} cpu = aten::sub.Tensor(%0, %2, 1)" +
                        out,
                    {{0, 0}}),
            "-1");
  EXPECT_EQ(targets(in + "%2: f32[8, 8]{8, 1} cpu = aten::exp.default(%0)\n"
                         "%3: f32[8, 8]{8, 1} cpu = aten::mm.default(%0, %1)\nreturn (%2, %3)\n",
                    {{0, 0}}),
            "-1");
  EXPECT_EQ(targets(in + "%2: f32[64]{1} cpu = aten::view.default(%0, [64])\n"
                         "%3: f32[8, 8]{8, 1} cpu = aten::exp.default(%0)\nreturn (%3, %2)\n",
                    {{0, 0}}),
            "-1");
}

TEST(InPlace, NotBeforeACallThatMayFail) {
  EXPECT_EQ(targets(std::string(kInputs) + "%2: f32[8, 8]{8, 1} cpu = aten::exp.default(%0)\n"
                                           "%3: f32[8, 8]{8, 1} cpu = aten::mm.default(%1, %1)\nreturn (%2, %3)\n",
                    {{0, 0}}),
            "-1");
}

TEST(InPlace, NotAValueThatIsHandedOutToo) {
  EXPECT_EQ(
      targets(std::string(kInputs) + "%2: f32[8, 8]{8, 1} cpu = aten::exp.default(%0)\nreturn (%2, %2)\n", {{0, 0}}),
      "-1");
}

}  // namespace
}  // namespace graphlift::codegen
