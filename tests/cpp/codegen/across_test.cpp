// Owns: tests of reductions across rows: graphs in text files of tests/text/across, and the kernels they become.
#include "backends/codegen/across.h"

#include <gtest/gtest.h>

#include "backends/codegen/fuse.h"
#include "ir/golden.h"

namespace graphlift::codegen {
namespace {

FusedGraph fused_of(const ir::Graph& graph, int64_t most) {
  FuseOptions options;
  options.group.few_results = true;
  options.group.most_across = most;
  return fuse(graph, options);
}

std::string across_kernels_text(const FusedGraph& fused) {
  std::string text;
  for (size_t i = 0; i < fused.kernels.size(); ++i)
    text += "kernel " + std::to_string(i) + ":\n" + print(fused.kernels[i]);
  return text;
}

TEST(Across, Goldens) {
  int files = 0;
  for (const ir::Golden& golden : ir::goldens("across")) {
    SCOPED_TRACE(golden.path.filename().string());
    auto graph = ir::parse(golden.input());
    ASSERT_EQ(ir::verify(*graph), "");
    const FusedGraph fused = fused_of(*graph, 4096);
    EXPECT_EQ(verify(fused), "");
    golden.expect({{"graph", ir::print(*fused.graph)}, {"kernels", across_kernels_text(fused)}});
    ++files;
  }
  EXPECT_GT(files, 0);
}

// A backend that does not ask for such kernels gets none, nor one whose rows are too long for it.
TEST(Across, OnlyWhereAskedFor) {
  for (const ir::Golden& golden : ir::goldens("across")) {
    SCOPED_TRACE(golden.path.filename().string());
    auto graph = ir::parse(golden.input());
    for (const int64_t most : {0, 31})
      for (const Kernel& kernel : fused_of(*graph, most).kernels) EXPECT_FALSE(kernel.has_across());
  }
}

TEST(Across, VerifierKnowsRows) {
  auto graph = ir::parse(
      "%0: f32[256, 32]{32, 1} cpu = input x\n"
      "%1: f32[256]{1} cpu = aten::sum.dim_IntList(%0, [1], false, none)\n"
      "%2: f32[32]{1} cpu = aten::sum.dim_IntList(%0, [0], false, none)\n"
      "return (%1, %2)\n");
  FusedGraph fused = fused_of(*graph, 4096);
  ASSERT_EQ(fused.kernels.size(), 1u);
  Kernel& kernel = fused.kernels[0];
  ASSERT_TRUE(kernel.has_across());
  EXPECT_EQ(verify(kernel), "");
  for (KernelStore& store : kernel.stores) std::swap(store.index.strides[0], store.index.strides[1]);
  EXPECT_EQ(verify(kernel), "a reduction across rows is stored where it varies with the row");
}

}  // namespace
}  // namespace graphlift::codegen
