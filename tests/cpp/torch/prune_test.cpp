// Graphs for the case that some tangents are undefined: text in, text out.
#include <gtest/gtest.h>

#include "torch/executable_alias.h"
#include "torch/executable_prune.h"

namespace graphlift::torch_layer {
namespace {

constexpr const char* kInputs = R"(%0: f32[3]{1} cpu = input saved
%1: f32[3]{1} cpu = input t
%2: f32[3]{1} cpu = input u
)";

std::string without(const std::string& calls, std::vector<bool> defined) {
  auto graph = ir::parse(kInputs + calls);
  auto pruned = without_tangents(*graph, 1, defined);
  EXPECT_EQ(ir::verify(*pruned), "");
  EXPECT_EQ(pruned->inputs().size(), 3u);
  const std::string text = ir::print(*pruned);
  EXPECT_EQ(text.substr(0, std::string(kInputs).size()), kInputs);
  return text.substr(std::string(kInputs).size());
}

TEST(Prune, WhatDependsOnUndefinedTangentsAloneIsUndefined) {
  EXPECT_EQ(without(R"(%3: f32[3]{1} cpu = aten::mul.Tensor(%1, %0) backward
%4: f32[3]{1} cpu = aten::mul.Tensor(%2, %0) backward
%5: f32[3]{1} cpu = aten::sin.default(%4) backward
return (%3, %5, %2)
)",
                    {true, false}),
            R"(%3: f32[3]{1} cpu = aten::mul.Tensor(%1, %0) backward
return (%3, none, none)
)");
}

TEST(Prune, SumsLoseATerm) {
  const char* calls = R"(%3: f32[3]{1} cpu = aten::mul.Tensor(%1, %0) backward
%4: f32[3]{1} cpu = aten::add.Tensor(%3, %2, 1) backward
%5: f32[3]{1} cpu = aten::neg.default(%4) backward
return (%5)
)";
  EXPECT_EQ(without(calls, {true, false}), R"(%3: f32[3]{1} cpu = aten::mul.Tensor(%1, %0) backward
%5: f32[3]{1} cpu = aten::neg.default(%3) backward
return (%5)
)");
  EXPECT_EQ(without(calls, {false, true}), R"(%5: f32[3]{1} cpu = aten::neg.default(%2) backward
return (%5)
)");
}

TEST(Prune, ZerosStandInElsewhere) {
  EXPECT_EQ(without(R"(%3: f32[6]{1} cpu = aten::cat.default([%1, %2], 0) backward
return (%3)
)",
                    {false, true}),
            R"(%4: f32[3]{1} cpu = aten::zeros.default([3], float32, none, device(cpu), none)
%3: f32[6]{1} cpu = aten::cat.default([%4, %2], 0) backward
return (%3)
)");
}

TEST(Alias, ViewsLeadToTheirOwner) {
  auto graph = ir::parse(R"(%0: f32[4, 6]{6, 1} cpu = input x
%1: f32[6, 4]{1, 6} cpu = aten::t.default(%0)
%2: (f32[2, 4]{1, 6} cpu, f32[2, 4]{1, 6} @(2) cpu, f32[2, 4]{1, 6} @(4) cpu) = aten::split.Tensor(%1, 2, 0)
%3: f32[8]{1} cpu = aten::_unsafe_view.default(%2.1, [8])
%4: f32[4, 6]{6, 1} cpu = aten::sin.default(%0)
%5: f32[24]{1} cpu = aten::view.default(%4, [24])
return (%2.1, %3, %5)
)");
  auto owner = [&](size_t i) { return memory_owner(*graph->outputs()[i].value()).node->id; };
  EXPECT_EQ(owner(0), 0);
  EXPECT_EQ(owner(1), 0);  // at run time it is a view, whatever its schema says
  EXPECT_EQ(owner(2), 4);
}

}  // namespace
}  // namespace graphlift::torch_layer
