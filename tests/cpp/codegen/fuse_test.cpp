// Owns: tests of fusion: graphs in text files of tests/text/codegen, and what becomes of them.
#include "backends/codegen/fuse.h"

#include <gtest/gtest.h>

#include "backends/codegen/lower_rule.h"
#include "backends/codegen/unit_order.h"
#include "base/error.h"
#include "ir/golden.h"
#include "ops/shape_rule.h"

namespace graphlift::codegen {
namespace {

std::string kernels_text(const FusedGraph& fused) {
  std::string text;
  for (size_t i = 0; i < fused.kernels.size(); ++i)
    text += "kernel " + std::to_string(i) + ":\n" + print(fused.kernels[i]);
  return text;
}

TEST(Fuse, Goldens) {
  int files = 0;
  for (const ir::Golden& golden : ir::goldens("codegen")) {
    SCOPED_TRACE(golden.path.filename().string());
    auto graph = ir::parse(golden.input());
    ASSERT_EQ(ir::verify(*graph), "");
    FuseOptions options;
    options.takes = [](const ir::Node& node) { return node.op.str() == "aten::mm.default"; };
    const FusedGraph fused = fuse(*graph, options);
    EXPECT_EQ(ir::verify(*fused.graph), "");
    golden.expect({{"graph", ir::print(*fused.graph)}, {"kernels", kernels_text(fused)}});
    ++files;
  }
  EXPECT_GT(files, 0);
}

// Without fusion every call has a kernel of its own, and the graph is still a graph.
TEST(Fuse, OneKernelPerCallWithoutFusion) {
  for (const ir::Golden& golden : ir::goldens("codegen")) {
    SCOPED_TRACE(golden.path.filename().string());
    auto graph = ir::parse(golden.input());
    FuseOptions options;
    options.group.fuse = false;
    const FusedGraph apart = fuse(*graph, options), together = fuse(*graph, {});
    EXPECT_EQ(ir::verify(*apart.graph), "");
    EXPECT_GE(apart.kernels.size(), together.kernels.size());
  }
}

// Calls that a backend puts in torch's place have the types of what they replace.
TEST(Lowering, EachRowHasAShapeRule) {
  for (const LowerRow* row : all_lowerings())
    if (!row->name.starts_with("graphlift::")) EXPECT_NE(ops::find_op(ir::Op(row->name)), nullptr) << row->name;
}

TEST(Lowering, PlacesComputedFromIndicesAreIndices) {
  const auto graph = ir::parse(R"(%0: i64[8]{1} cpu = aten::arange.start_step(3, 19, 2)
%1: i64[8]{1} cpu = aten::mul.Tensor(%0, 5)
return (%1)
)");
  const auto fused = fuse(*graph, FuseOptions());
  ASSERT_EQ(fused.kernels.size(), 1u);
  const Kernel& kernel = fused.kernels[0];
  const ScalarNode& stored = kernel.nodes[static_cast<size_t>(kernel.stores[0].value)];
  EXPECT_EQ(stored.kind, ScalarNode::Kind::Index);
  EXPECT_TRUE(stored.index.offset.same(15));
  EXPECT_TRUE(stored.index.strides[0].same(10));
}

TEST(UnitOrder, TransitiveAndStable) {
  UnitOrder units;
  for (int i = 0; i < 70; ++i) units.add();
  units.depend(0, 69);
  units.depend(69, 5);
  units.depend(7, 0);
  EXPECT_TRUE(units.reaches(5, 7));
  EXPECT_FALSE(units.reaches(7, 5));
  EXPECT_THROW(units.depend(5, 7), InternalError);
  const std::vector<int> order = units.order();
  ASSERT_EQ(order.size(), 70u);
  std::vector<size_t> place(70);
  for (size_t i = 0; i < order.size(); ++i) place[static_cast<size_t>(order[i])] = i;
  EXPECT_LT(place[5], place[69]);
  EXPECT_LT(place[69], place[0]);
  EXPECT_LT(place[0], place[7]);
  EXPECT_EQ(order[0], 1);
}

}  // namespace
}  // namespace graphlift::codegen
