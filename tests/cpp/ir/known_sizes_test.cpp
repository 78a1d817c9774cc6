// Owns: tests of a graph that is written with what guards say of its sizes.
#include "ir/known_sizes.h"

#include <gtest/gtest.h>

namespace graphlift::ir {
namespace {

constexpr const char* kBefore =
    "%0: f32[s0, s1]{s1, 1} cpu = input x\n"
    "%1: f32[s2, s3]{s3, 1}@(s3) cpu = input y\n"
    "%2: f32[s0, s1]{s1, 1} cpu = aten::add.Tensor(%0, %1, 1)\n"
    "%3: f32[s2*s3]{1} cpu = aten::view.default(%2, [s2*s3])\n"
    "return (%3)\n";

TEST(KnownSizes, EqualOnesAreOneSymbolAndFixedOnesNumbers) {
  ShapeEnv env;
  const Sym a = env.new_symbol(5, "a"), b = env.new_symbol(8, "b"), c = env.new_symbol(5, "c"),
            d = env.new_symbol(8, "d");
  auto graph = parse(kBefore);
  put_known_sizes(graph.get(), env);
  EXPECT_EQ(print(*graph), kBefore);  // nothing was guarded
  EXPECT_TRUE(env.guard(Relation::Eq, a, c));
  EXPECT_TRUE(env.guard(Relation::Eq, b, d));
  EXPECT_EQ(env.specialize(d), 8);
  put_known_sizes(graph.get(), env);
  EXPECT_EQ(print(*graph),
            "%0: f32[s0, 8]{8, 1} cpu = input x\n"
            "%1: f32[s0, 8]{8, 1}@(8) cpu = input y\n"
            "%2: f32[s0, 8]{8, 1} cpu = aten::add.Tensor(%0, %1, 1)\n"
            "%3: f32[s0*8]{1} cpu = aten::view.default(%2, [s0*8])\n"
            "return (%3)\n");
  EXPECT_EQ(verify(*graph), "");
}

TEST(KnownSizes, WhatAGuardSaysOfAnExpression) {
  ShapeEnv env;
  const Sym whole = env.new_symbol(12, "whole"), half = env.new_symbol(6, "half");
  EXPECT_TRUE(env.guard(Relation::Eq, whole, half * 2));
  TensorType type = parse_type("f32[s0, s1]{s1, 1} cpu");
  put_known_sizes(&type, env);
  EXPECT_TRUE(type.sizes[0].same(half * 2) || type.sizes[1].same(floordiv(whole, Sym(2))));
}

}  // namespace
}  // namespace graphlift::ir
