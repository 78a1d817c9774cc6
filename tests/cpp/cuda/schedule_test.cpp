// Which schedule kernels of typical graphs get, and what of it is seen in their text.
#include "backends/cuda/schedule.h"

#include <gtest/gtest.h>

#include "backends/codegen/fuse.h"
#include "backends/cuda/cuda.h"
#include "backends/cuda/cuda_kernel.h"

namespace graphlift::cuda {
namespace {

codegen::Kernel kernel_of(const std::string& text) {
  const auto graph = ir::parse(text);
  codegen::FuseOptions options;
  options.lower.device_type = 0;
  options.group.most_across = 8192;
  auto fused = codegen::fuse(*graph, options);
  EXPECT_EQ(fused.kernels.size(), 1u);
  return std::move(fused.kernels.at(0));
}

Schedule scheduled(const codegen::Kernel& kernel, const Variant& variant = {}) {
  return schedule_kernel(kernel, Target{}, variant);
}

std::string unary(const std::string& type, const std::string& call) {
  return "%0: " + type + " cpu = input x\n%1: " + type + " cpu = " + call + "\nreturn (%1)\n";
}

TEST(Schedule, AThreadMovesSixteenBytes) {
  EXPECT_EQ(scheduled(kernel_of(unary("f32[1048576]{1}", "aten::exp.default(%0)"))).lanes, 4);
  EXPECT_EQ(scheduled(kernel_of(unary("bf16[1048576]{1}", "aten::exp.default(%0)"))).lanes, 8);
  EXPECT_EQ(scheduled(kernel_of(unary("f64[1048576]{1}", "aten::exp.default(%0)"))).lanes, 2);
}

TEST(Schedule, AnOddNumberOfElementsLeavesARaggedEnd) {
  const Schedule schedule = scheduled(kernel_of(unary("f32[1048577]{1}", "aten::exp.default(%0)")));
  EXPECT_EQ(schedule.lanes, 4);
  EXPECT_TRUE(schedule.ragged);
}

TEST(Schedule, MemoryThatIsNotAlignedIsReadOneByOne) {
  const auto kernel = kernel_of(unary("f32[1048576]{1}", "aten::exp.default(%0)"));
  EXPECT_EQ(scheduled(kernel, {false, false}).lanes, 1);
}

TEST(Schedule, AShortRowIsAPartOfAWarpsWork) {
  const Schedule schedule =
      scheduled(kernel_of(unary("f32[4096, 64]{64, 1}", "aten::_softmax.default(%0, -1, false)")));
  EXPECT_EQ(schedule.shape, Shape::Rows);
  EXPECT_LE(schedule.across, 32);
  EXPECT_TRUE(schedule.keeps);
}

TEST(Schedule, ALongRowIsABlocksWorkAndStaysInRegisters) {
  const Schedule schedule =
      scheduled(kernel_of(unary("f32[4096, 4096]{4096, 1}", "aten::_softmax.default(%0, -1, false)")));
  EXPECT_EQ(schedule.shape, Shape::Rows);
  EXPECT_EQ(schedule.across, schedule.threads);
  EXPECT_TRUE(schedule.keeps);
  EXPECT_EQ(schedule.splits, 1);
}

constexpr const char* kColumnSum = R"(%0: f32[30000, 768]{768, 1} cpu = input x
%1: f32[768]{1} cpu = aten::sum.dim_IntList(%0, [0], false, none)
return (%1)
)";

TEST(Schedule, FewColumnsAreSplitOverTheirRows) {
  const auto kernel = kernel_of(kColumnSum);
  const Schedule schedule = scheduled(kernel);
  EXPECT_EQ(schedule.shape, Shape::Columns);
  EXPECT_GT(schedule.splits, 8);
  const KernelSource source = emit_kernel(kernel, schedule, {false, false});
  EXPECT_EQ(source.launches.size(), 2u);
  EXPECT_EQ(source.workspace.constant(), int64_t{768} * 8 * schedule.splits);
}

TEST(Schedule, FewColumnsOfManyRowsAreReadInVectors) {
  auto lanes = [](const std::string& rows) {
    const std::string text = "%0: bf16[" + rows + ", 64]{64, 1} cpu = input x\n" +
                             "%1: bf16[64]{1} cpu = aten::sum.dim_IntList(%0, [0], false, none)\nreturn (%1)\n";
    return scheduled(kernel_of(text)).lanes;
  };
  EXPECT_EQ(lanes("1048576"), 8);
  EXPECT_EQ(lanes("512"), 2);
}

// Gradients of a layer norm's weights: two numbers per row lie next to each other, the large operands do along a row.
TEST(Schedule, LargeOperandsChooseTheAxis) {
  const auto kernel = kernel_of(R"(%0: bf16[32768, 2048]{2048, 1} cpu = input x
%1: f32[32768, 1]{1, 1} cpu = input mean
%2: f32[32768, 2048]{2048, 1} cpu = aten::sub.Tensor(%0, %1, 1)
%3: f32[2048]{1} cpu = aten::sum.dim_IntList(%2, [0], false, none)
return (%3)
)");
  const Schedule schedule = scheduled(kernel);
  EXPECT_EQ(schedule.shape, Shape::Columns);
  EXPECT_GT(schedule.splits, 8);
}

// A mean per column, and what is off it: each block of the second loop would join all partial results otherwise.
TEST(Schedule, PartialResultsOfColumnsAreJoinedOnce) {
  const auto kernel = kernel_of(R"(%0: f32[200000, 64]{64, 1} cpu = input x
%1: f32[1, 64]{64, 1} cpu = aten::mean.dim(%0, [0], true, none)
%2: f32[200000, 64]{64, 1} cpu = aten::sub.Tensor(%0, %1, 1)
return (%2)
)");
  const KernelSource source = emit_kernel(kernel, scheduled(kernel), {false, false});
  ASSERT_EQ(source.launches.size(), 3u);
  EXPECT_GT(source.launches[0].splits, 8);
  EXPECT_EQ(source.launches[1].splits, 1);
  EXPECT_EQ(source.launches[1].blocks.constant(), 16);
  EXPECT_EQ(source.launches[2].splits, source.launches[0].splits);
}

size_t count(const std::string& text, const std::string& part) {
  size_t found = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

// The gradient of a norm: by rows for its input, across them for its weight.
TEST(Schedule, BlocksWalkOverRowsThatAreReducedAcross) {
  const auto kernel = kernel_of(R"(%0: bf16[32768, 2048]{2048, 1} cpu = input x
%1: bf16[32768, 2048]{2048, 1} cpu = input gradient
%2: bf16[32768, 2048]{2048, 1} cpu = aten::mul.Tensor(%0, %1)
%3: bf16[32768, 1]{1, 1} cpu = aten::sum.dim_IntList(%2, [1], true, none)
%4: bf16[32768, 2048]{2048, 1} cpu = aten::sub.Tensor(%1, %3, 1)
%5: bf16[2048]{1} cpu = aten::sum.dim_IntList(%2, [0], false, none)
return (%4, %5)
)");
  const Schedule schedule = scheduled(kernel);
  EXPECT_EQ(schedule.shape, Shape::Rows);
  EXPECT_EQ(schedule.lanes, 8);
  EXPECT_EQ(schedule.stages, 2) << "the next row is copied meanwhile";
  EXPECT_EQ(schedule.resident * schedule.threads, 512);
  EXPECT_EQ(schedule.walkers, schedule.resident * Target{}.processors);
  const KernelSource source = emit_kernel(kernel, schedule, std::vector<bool>(4, false));
  ASSERT_EQ(source.launches.size(), 2u);
  EXPECT_EQ(source.launches[0].blocks.constant(), schedule.walkers);
  EXPECT_EQ(source.workspace.constant(), int64_t{schedule.walkers} * 2048 * 8);
  EXPECT_EQ(count(source.text, "gl_copy_ahead<8>("), 4u) << "two loads, of the first row and of each next one";
  EXPECT_EQ(count(source.text, "gl_load<8>(b"), 0u) << source.text;
  EXPECT_EQ(source.launches[0].shared, 2 * 2 * 2 * 2048);
  // An older GPU has no such copies.
  Target turing;
  turing.architecture = 75;
  const Schedule older = schedule_kernel(kernel, turing, {});
  EXPECT_EQ(older.stages, 0);
  EXPECT_TRUE(older.keeps);
  const KernelSource plain = emit_kernel(kernel, older, std::vector<bool>(4, false));
  EXPECT_EQ(count(plain.text, "gl_load<8>(b"), 2u) << plain.text;
}

// Two sums of a row are joined together, by half of the shuffles.
TEST(Schedule, SumsAreJoinedInPairs) {
  const auto kernel = kernel_of(R"(%0: f32[4096, 4096]{4096, 1} cpu = input x
%1: f32[4096, 1]{1, 1} cpu = aten::sum.dim_IntList(%0, [1], true, none)
%2: f32[4096, 4096]{4096, 1} cpu = aten::exp.default(%0)
%3: f32[4096, 1]{1, 1} cpu = aten::sum.dim_IntList(%2, [1], true, none)
return (%1, %3)
)");
  const std::string text = emit_kernel(kernel, scheduled(kernel), std::vector<bool>(3, false)).text;
  EXPECT_EQ(count(text, "gl_block_leave<gl_sum>("), 1u) << text;
  EXPECT_EQ(count(text, "[64];"), 1u) << text;
}

// A gradient of a slice reads in whole vectors, and nothing outside of it.
TEST(Schedule, PiecesAreReadWhereTheyAre) {
  const auto graph = ir::parse(R"(%0: f32[64, 10, 256]{2560, 256, 1} cpu = input x
%1: f32[64, 40, 256]{10240, 256, 1} cpu = aten::slice_backward.default(%0, [64, 40, 256], 1, 3, 13, 1)
return (%1)
)");
  codegen::FuseOptions options;
  options.lower.device_type = 0;
  options.lower.places = options.lower.skips_loads = true;
  const auto fused = codegen::fuse(*graph, options);
  ASSERT_EQ(fused.kernels.size(), 1u);
  EXPECT_TRUE(fused.checks.empty());
  const auto& kernel = fused.kernels[0];
  const std::string text = emit_kernel(kernel, scheduled(kernel), {false, false}).text;
  EXPECT_EQ(count(text, "gl_load<4>(b0"), 1u) << text;
  EXPECT_NE(text.find("if ((("), std::string::npos) << "a load under a condition";
}

TEST(Schedule, ALongRowStaysInSharedMemory) {
  auto source_of = [](const std::string& type) {
    const auto kernel = kernel_of(unary(type, "aten::_softmax.default(%0, 1, false)"));
    return emit_kernel(kernel, scheduled(kernel), {false, false});
  };
  EXPECT_EQ(source_of("f32[2048, 50257]{50257, 1}").launches.at(0).shared, 50257 * 4 / 16 * 16 + 16);
  EXPECT_EQ(source_of("bf16[2048, 50304]{50304, 1}").launches.at(0).shared, 50304 * 2);
  EXPECT_EQ(source_of("f32[2048, 80001]{80001, 1}").launches.at(0).shared, 0);  // more than a block has
  EXPECT_EQ(source_of("f32[2048, 2048]{2048, 1}").launches.at(0).shared, 0);    // in registers
}

TEST(Schedule, OddRowsAreReadInVectorsFromWhereTheyFit) {
  const auto kernel = kernel_of(unary("bf16[2048, 50257]{50257, 1}", "aten::_softmax.default(%0, 1, false)"));
  const Schedule schedule = scheduled(kernel);
  EXPECT_TRUE(schedule.peeled);
  EXPECT_EQ(schedule.lanes, 8);
  EXPECT_EQ(schedule.threads, 512) << "two blocks at once";
  EXPECT_FALSE(scheduled(kernel, {false, false}).peeled) << "memory that is not aligned";
  EXPECT_NE(emit_kernel(kernel, schedule, {false, false}).text.find("gl_load<8>(b0"), std::string::npos);
  for (const char* even : {"bf16[2048, 50264]{50264, 1}", "bf16[2048, 257]{257, 1}"})
    EXPECT_FALSE(scheduled(kernel_of(unary(even, "aten::_softmax.default(%0, 1, false)"))).peeled) << even;
}

// The operand of a sum over a row lies otherwise than what is added to it.
TEST(Schedule, VectorsOfOddRowsLieTogether) {
  const auto kernel = kernel_of(R"(%0: f32[512, 4097]{4097, 1} cpu = input x
%1: f32[512, 4097]{4098, 1} cpu = input y
%2: f32[512, 4097]{4097, 1} cpu = aten::mul.Tensor(%0, %1)
%3: f32[512]{1} cpu = aten::sum.dim_IntList(%2, [1], false, none)
return (%3)
)");
  EXPECT_FALSE(scheduled(kernel).peeled);
  EXPECT_EQ(scheduled(kernel).lanes, 1);
}

TEST(Schedule, AMaximumAndTheSumThatItShiftsAreOneLoop) {
  auto phases = [](const std::string& type, const std::string& call) {
    return scheduled(kernel_of(unary(type, call))).phases;
  };
  const std::string softmax = "aten::_softmax.default(%0, 1, false)";
  EXPECT_EQ(phases("f32[64, 1048576]{1048576, 1}", softmax), 2);
  EXPECT_EQ(phases("f32[2048, 50257]{50257, 1}", softmax), 2);
  EXPECT_EQ(phases("f32[2048, 2048]{2048, 1}", softmax), 3) << "in registers";
  const auto kernel = kernel_of(unary("f32[64, 1048576]{1048576, 1}", softmax));
  EXPECT_EQ(emit_kernel(kernel, scheduled(kernel), {false, false}).launches.size(), 2u);
}

// Each of many reductions has places of its own where the warps of a row meet.
TEST(Schedule, SharedMemoryIsLeftForJoins) {
  std::string text = "%0: f64[2048, 20000]{20000, 1} cpu = input x\n", results;
  const int sums = 24;
  for (int i = 0; i < sums; ++i) {
    const std::string product = std::to_string(1 + 3 * i), sum = std::to_string(2 + 3 * i),
                      off = std::to_string(3 + 3 * i);
    text +=
        "%" + product + ": f64[2048, 20000]{20000, 1} cpu = aten::mul.Tensor(%0, " + std::to_string(i + 2) + ".5)\n";
    text += "%" + sum + ": f64[2048, 1]{1, 1} cpu = aten::sum.dim_IntList(%" + product + ", [1], true, none)\n";
    text += "%" + off + ": f64[2048, 20000]{20000, 1} cpu = aten::sub.Tensor(%0, %" + sum + ", 1)\n";
    results += (i ? ", %" : "%") + off;
  }
  const auto kernel = kernel_of(text + "return (" + results + ")\n");
  const Schedule schedule = scheduled(kernel);
  ASSERT_GT(schedule.room, 0);
  EXPECT_LE(schedule.room + sums * 32 * 8, Target{}.shared_bytes);
}

std::string updates(const std::string& type, const std::string& other) {
  return "%0: " + type + " cuda:0 = input x\n%1: " + other + " = input y\n%2: " + type +
         " cuda:0 = aten::exp.default(%0)\n%3: " + other + " = aten::exp.default(%1)\nreturn (%2, %3)\n";
}

// Two texts per kernel: one or two of them.
TEST(Schedule, PartsOfALaunch) {
  auto kernels = [](const std::string& text) { return kernel_texts(*ir::parse(text), 1, 90).size() / 2; };
  EXPECT_EQ(kernels(updates("f32[40]{1}", "f32[50]{1} cuda:0")), 1u);
  EXPECT_EQ(kernels(updates("f32[40]{1}", "f32[50]{1} cuda:1")), 2u) << "a launch is on one GPU";
  EXPECT_EQ(kernels(updates("f32[4000]{1048576}", "f32[3000]{1048576} cuda:0")), 2u) << "indices are narrow";
}

// What a maximum is found in may be computed again in another kernel, and compared.
TEST(Schedule, ResultsOf16BitsAreComputedByFastFunctions) {
  auto is_fast = [](const std::string& type, const std::string& call, const std::string& more = "") {
    const auto kernel = kernel_of("%0: " + type + " cpu = input x\n%1: " + type + " cpu = " + call + "\n" +
                                  (more.empty() ? "return (%1)\n" : more));
    return emit_kernel(kernel, scheduled(kernel), {false, false}).text.find("#define GL_NEARLY") == 0;
  };
  EXPECT_TRUE(is_fast("bf16[512, 64]{64, 1}", "aten::exp.default(%0)"));
  EXPECT_TRUE(is_fast("f16[512, 64]{64, 1}", "aten::_softmax.default(%0, 1, false)"));
  EXPECT_FALSE(is_fast("f32[512, 64]{64, 1}", "aten::exp.default(%0)"));
  EXPECT_FALSE(is_fast("bf16[512, 64]{64, 1}", "aten::exp.default(%0)",
                       "%2: bf16[512]{1} cpu = aten::amax.default(%1, [1], false)\nreturn (%2)\n"));
}

TEST(Schedule, ATransposeHasTiles) {
  const auto kernel = kernel_of(R"(%0: f32[512, 256]{256, 1} cpu = input x
%1: f32[256, 512]{1, 256} cpu = aten::transpose.int(%0, 0, 1)
%2: f32[256, 512]{512, 1} cpu = aten::clone.default(%1, none)
return (%2)
)");
  EXPECT_GE(scheduled(kernel).tile_axis, 0);
}

TEST(Schedule, TilingsAreDifferentAndReadBack) {
  const auto rows = kernel_of(unary("f32[4096, 4096]{4096, 1}", "aten::_softmax.default(%0, -1, false)"));
  const std::vector<Tiling> found = tilings(rows, Target{}, {});
  ASSERT_GE(found.size(), 3u);
  EXPECT_EQ(found.front(), Tiling{});
  std::vector<Schedule> seen;
  for (const Tiling& tiling : found) {
    Target target;
    target.tiling = tiling;
    const Schedule schedule = schedule_kernel(rows, target, {});
    for (const Schedule& other : seen) EXPECT_FALSE(other == schedule) << tiling.str();
    seen.push_back(schedule);
    EXPECT_EQ(tiling_from(tiling.str()), tiling);
  }
  for (const char* wrong : {"", "8 0 4", "3 0 4 100", "8 33 4 100", "8 2048 4 100", "8 0 0 100", "8 0 4 -1"})
    EXPECT_FALSE(tiling_from(wrong)) << wrong;
}

// In the mode "max-autotune" a tiling that did not compile was an internal error.
TEST(Schedule, ColumnsAreJoinedInMemoryThatNeedNotBeAskedFor) {
  const auto kernel = kernel_of(R"(%0: bf16[64, 64, 64, 64]{262144, 1, 4096, 64} cpu = input x
%1: (bf16[64, 64, 64, 64]{262144, 1, 4096, 64} cpu, f32[64]{1} cpu, f32[64]{1} cpu) = aten::_native_batch_norm_legit.no_stats(%0, none, none, true, 0.1, 1e-05)
return (%1.0)
)");
  for (const Tiling& tiling : tilings(kernel, Target{}, {})) {
    Target target;
    target.tiling = tiling;
    const Schedule schedule = schedule_kernel(kernel, target, {});
    ASSERT_EQ(schedule.shape, Shape::Columns);
    EXPECT_LE(schedule.threads * schedule.lanes * 8, 48 << 10) << tiling.str();
    EXPECT_LE(schedule.lanes, 4) << "sums of eight bytes for each lane";
    // All blocks that share columns fit at once, in registers of 64 for each thread at least.
    if (schedule.splits > 1) EXPECT_GE(schedule.resident, 1) << tiling.str();
    EXPECT_LE(schedule.resident * schedule.threads, 1024) << tiling.str();
  }
}

TEST(Schedule, NumbersComeByValueAndSizesAsParameters) {
  const auto kernel = kernel_of(unary("f32[s0]{1}", "aten::mul.Tensor(%0, %0)"));
  const KernelSource source = emit_kernel(kernel, scheduled(kernel, {true, true}), {true, false});
  EXPECT_NE(source.text.find("(float b0, float* __restrict__ b1, idx n0"), std::string::npos) << source.text;
  EXPECT_NE(source.text.find("typedef long long idx;"), std::string::npos);
}

}  // namespace
}  // namespace graphlift::cuda
