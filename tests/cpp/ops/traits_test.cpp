// Owns: tests of operators' effects and work.
#include "ops/traits.h"

#include <gtest/gtest.h>

namespace graphlift::ops {
namespace {

TEST(Traits, RowsByNameAndOverload) {
  struct {
    const char* name;
    Effect effect;
    Work work;
  } rows[] = {
      {"aten::add.Tensor", Effect::None, Work::Cheap},
      {"aten::add_.Tensor", Effect::Write, Work::Heavy},
      {"aten::add.out", Effect::Write, Work::Heavy},
      {"aten::__lshift__.Tensor", Effect::None, Work::Cheap},
      {"aten::max.other", Effect::None, Work::Cheap},
      {"aten::max.dim", Effect::None, Work::Heavy},
      {"aten::where.self", Effect::None, Work::Cheap},
      {"aten::where.default", Effect::None, Work::Heavy},
      {"aten::gelu.default", Effect::None, Work::Costly},
      {"aten::mm.default", Effect::None, Work::Heavy},
      {"aten::view.default", Effect::None, Work::View},
      {"aten::_unsafe_view.default", Effect::None, Work::View},
      {"aten::bernoulli.p", Effect::Random, Work::Heavy},
      {"aten::rand_like.default", Effect::Random, Work::Heavy},
      {"aten::native_batch_norm.default", Effect::Write, Work::Heavy},
      {"aten::_native_batch_norm_legit_functional.default", Effect::None, Work::Heavy},
      {"aten::copy_.default", Effect::Write, Work::Heavy},
      {"aten::copy.default", Effect::None, Work::Heavy},
      {"graphlift::constant", Effect::None, Work::View},
      {"mylib::thing.default", Effect::Write, Work::Heavy},
  };
  for (auto [name, effect, work] : rows) {
    for (int repeat = 0; repeat < 2; ++repeat) {
      EXPECT_EQ(traits(ir::Op(name)).effect, effect) << name;
      EXPECT_EQ(traits(ir::Op(name)).work, work) << name;
    }
  }
}

TEST(Traits, MemoryOwnerGoesThroughViews) {
  auto graph = ir::parse(
      "%0: f32[4]{1} cpu = input x\n"
      "%1: f32[4]{1} cpu = aten::relu.default(%0)\n"
      "%2: (f32[2]{1} cpu, f32[2]{1}@(2) cpu) = aten::split.Tensor(%1, 2, 0)\n"
      "%3: f32[1, 2]{2, 1}@(2) cpu = aten::view.default(%2.1, [1, 2])\n"
      "%4: f32[]{} cpu = graphlift::constant(0)\n"
      "return (%3, %4)\n");
  EXPECT_EQ(memory_owner({graph->find(3), 0}), (ir::ValueRef{graph->find(1), 0}));
  EXPECT_EQ(memory_owner({graph->find(1), 0}), (ir::ValueRef{graph->find(1), 0}));
  EXPECT_EQ(memory_owner({graph->find(4), 0}), (ir::ValueRef{graph->find(4), 0}));
  EXPECT_EQ(viewed_value(*graph->find(4)), nullptr);
}

}  // namespace
}  // namespace graphlift::ops
