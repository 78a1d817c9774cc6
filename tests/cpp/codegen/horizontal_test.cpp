// Owns: tests of horizontal fusion: graphs in text files of tests/text/horizontal, and what becomes of them.
#include "backends/codegen/horizontal.h"

#include <gtest/gtest.h>

#include <sstream>

#include "backends/codegen/in_place.h"
#include "ir/golden.h"

namespace graphlift::codegen {
namespace {

// "0>1 2>3": outputs, and the inputs that they are written to.
std::vector<std::pair<int, int>> writes_of(const std::string& text) {
  std::vector<std::pair<int, int>> writes;
  std::istringstream words(text);
  for (std::string word; words >> word;)
    writes.emplace_back(std::stoi(word), std::stoi(word.substr(word.find('>') + 1)));
  return writes;
}

FusedGraph fused_of(const ir::Graph& graph, const std::vector<std::pair<int, int>>& writes, bool siblings = true) {
  FuseOptions options;
  options.group.fuse = siblings;
  options.takes = [](const ir::Node& node) { return node.op.str() == "aten::mm.default"; };
  FusedGraph fused = fuse(graph, options);
  write_in_place(&fused, writes);
  return fused;
}

std::string programs(const FusedGraph& fused) {
  std::string text;
  for (const MultiKernel& multi : fused.multis) {
    text += "kernels";
    for (const auto& part : multi.parts) text += " " + std::to_string(part.kernel);
    text += ":\n" + print(multi.program);
  }
  return text;
}

TEST(HorizontalFusion, Goldens) {
  int files = 0;
  for (const ir::Golden& golden : ir::goldens("horizontal")) {
    SCOPED_TRACE(golden.path.filename().string());
    auto graph = ir::parse(golden.input());
    ASSERT_EQ(ir::verify(*graph), "");
    FusedGraph fused = fused_of(*graph, writes_of(golden.setting("writes")), golden.setting("siblings") != "apart");
    const size_t kernels = fused.kernels.size();
    fuse_horizontally(&fused);
    EXPECT_EQ(verify(fused), "");
    EXPECT_EQ(fused.kernels.size(), kernels);
    golden.expect({{"graph", ir::print(*fused.graph)}, {"programs", programs(fused)}});
    ++files;
  }
  EXPECT_GT(files, 0);
}

// Each kernel runs once, in one call or another.
TEST(HorizontalFusion, KeepsAllKernels) {
  std::string text;
  const int tensors = 9;
  for (int i = 0; i < tensors; ++i)
    text += "%" + std::to_string(i) + ": f32[" + std::to_string(5 + i % 3) + "]{1} cpu = input x" + std::to_string(i) +
            "\n";
  std::string results;
  for (int i = 0; i < tensors; ++i) {
    const std::string type = ": f32[" + std::to_string(5 + i % 3) + "]{1} cpu = ";
    text += "%" + std::to_string(tensors + i) + type + (i < 6 ? "aten::exp" : "aten::relu") + ".default(%" +
            std::to_string(i) + ")\n";
    results += (i ? ", %" : "%") + std::to_string(tensors + i);
  }
  auto graph = ir::parse(text + "return (" + results + ")\n");
  FusedGraph fused = fused_of(*graph, {});
  fuse_horizontally(&fused);
  ASSERT_EQ(fused.multis.size(), 2u);
  EXPECT_EQ(fused.multis[0].parts.size(), 6u);
  EXPECT_EQ(fused.multis[1].parts.size(), 3u);
  EXPECT_EQ(fused.graph->outputs().size(), static_cast<size_t>(tensors));
}

}  // namespace
}  // namespace graphlift::codegen
