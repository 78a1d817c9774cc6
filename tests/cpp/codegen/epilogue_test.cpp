// Which calls go with one that a backend takes, and what they keep of what is on their way.
#include "backends/codegen/epilogue.h"

#include <gtest/gtest.h>

#include "backends/codegen/fuse.h"

namespace graphlift::codegen {
namespace {

bool is_product(const ir::Node& node) { return node.op.str() == "aten::mm.default"; }

// Ends with a gelu; keeps what it is taken of.
Finish finish(const Chain& chain, int kept) {
  const std::string name(chain.back()->op.str());
  if (kept >= 0 && kept + 2 != static_cast<int>(chain.size())) return Finish::No;
  if (name == "aten::gelu.default") return Finish::Here;
  return name == "aten::mul.Tensor" && kept < 0 ? Finish::Through : Finish::No;
}

std::string fused_text(const std::string& calls, const std::string& results) {
  const std::string text = "%0: f32[8, 8]{8, 1} cpu = input x\n%1: f32[8, 8]{8, 1} cpu = aten::mm.default(%0, %0)\n" +
                           calls + "return (" + results + ")\n";
  const auto graph = ir::parse(text);
  FuseOptions options;
  options.takes = is_product;
  options.finishes = finish;
  const FusedGraph fused = fuse(*graph, options);
  return ir::print(*fused.graph);
}

std::string call(int number, const std::string& what) {
  return "%" + std::to_string(number) + ": f32[8, 8]{8, 1} cpu = " + what + "\n";
}

const std::string kGelu = "aten::gelu.default(%1, \"tanh\")";

size_t count(const std::string& text, const std::string& part) {
  size_t found = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

TEST(Epilogue, ACallBehindIsPartOfIt) {
  const std::string text = fused_text(call(2, kGelu), "%2");
  EXPECT_EQ(count(text, "graphlift::native"), 1u) << text;
  EXPECT_EQ(count(text, "graphlift::kernel"), 0u) << text;
}

TEST(Epilogue, WhatLeavesTheGraphIsKept) {
  const std::string text = fused_text(call(2, kGelu), "%2, %1");
  EXPECT_EQ(count(text, "graphlift::kernel"), 0u) << text;
  EXPECT_NE(text.find("return (%1.0, %1.1)"), std::string::npos) << text;
}

TEST(Epilogue, ACallFurtherBackReadsWhatIsKept) {
  const std::string text = fused_text(call(2, kGelu) + call(3, "aten::exp.default(%1)"), "%2, %3");
  EXPECT_EQ(count(text, "graphlift::native"), 1u) << text;
  EXPECT_EQ(count(text, "graphlift::kernel"), 1u) << text;
}

TEST(Epilogue, WhoReadsFirstIsFollowedAlone) {
  const std::string text = fused_text(call(2, "aten::exp.default(%1)") + call(3, kGelu), "%2, %3");
  EXPECT_EQ(count(text, "graphlift::kernel"), 1u) << "exp and gelu are one kernel:\n" << text;
}

TEST(Epilogue, OthersWaitForTheLastOfTheChain) {
  // exp reads what would be kept, before the gelu that would store it.
  const std::string calls = call(2, "aten::mul.Tensor(%1, 2.0)") + call(3, "aten::exp.default(%1)") +
                            call(4, "aten::gelu.default(%2, \"tanh\")");
  const std::string text = fused_text(calls, "%3, %4");
  EXPECT_EQ(count(text, "graphlift::kernel"), 1u) << text;
}

TEST(Epilogue, NoCallOfTheChainReadsWhatTheChainKeeps) {
  const std::string text = fused_text(call(2, kGelu) + call(3, "aten::mul.Tensor(%2, %1)"), "%3");
  EXPECT_EQ(count(text, "graphlift::kernel"), 1u) << text;
}

TEST(Epilogue, ACallThatReadsItTwiceIsNone) {
  const std::string text = fused_text(call(2, "aten::mul.Tensor(%1, %1)"), "%2");
  EXPECT_EQ(count(text, "graphlift::kernel"), 1u) << text;
}

}  // namespace
}  // namespace graphlift::codegen
