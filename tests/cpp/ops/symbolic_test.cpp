// Owns: tests of shape rules with symbolic sizes: the expressions they give and the guards they leave.
#include <gtest/gtest.h>

#include <deque>

#include "ops/layout.h"
#include "ops/shape_rule.h"

namespace graphlift::ops {
namespace {

using ir::Device;
using ir::Dims;
using ir::DType;
using ir::Sym;
using ir::TensorType;

class Symbolic : public testing::Test {
 protected:
  ir::ShapeEnv env;
  Sym batch = env.new_symbol(4, "b"), length = env.new_symbol(7, "s");
  std::deque<TensorType> types;  // addresses stay
  std::vector<Sym> ints;

  const TensorType* tensor(Dims sizes, DType dtype = DType::float32, Device device = {}) {
    Dims strides = contiguous(sizes);
    types.push_back({dtype, device, std::move(sizes), std::move(strides), 0, false});
    return &types.back();
  }
  const TensorType* keep(const std::optional<TensorType>& type) {
    types.push_back(*type);
    return &types.back();
  }
  static ShapeArg list(const Dims& dims) { return std::vector<ShapeArg>(dims.begin(), dims.end()); }

  // The results, empty where the rule declines.
  std::vector<std::optional<TensorType>> ask(const char* name, std::vector<ShapeArg> args) {
    const OpRow* row = find_op(ir::Op(name));
    EXPECT_NE(row, nullptr) << name;
    std::vector<std::optional<TensorType>> results;
    ShapeCall call{args, env, results};
    if (!row || !row->shape(call)) return {};
    ints = call.int_results;
    return results;
  }
  std::string text(const char* name, std::vector<ShapeArg> args) {
    std::string joined;
    for (const auto& result : ask(name, std::move(args))) {
      if (!joined.empty()) joined += "; ";
      joined += result ? result->str() : "none";
    }
    return joined;
  }
  std::string guards() const {
    std::string joined;
    for (const ir::SymGuard& guard : env.guards()) joined += guard.str() + "; ";
    return joined;
  }
};

TEST_F(Symbolic, TransformerLayerLeavesNoGuard) {
  const TensorType* tokens = tensor({batch, length}, DType::int64);
  auto embedded = keep(ask("aten::embedding.default", {tensor({100, 8}), tokens, Sym(-1), false, false}).at(0));
  auto added = keep(ask("aten::add.Tensor", {embedded, tensor({length, 8}), Sym(1)}).at(0));
  auto norm = ask("aten::native_layer_norm.default", {added, list({8}), tensor({8}), tensor({8}), 1e-5});
  EXPECT_EQ(norm.at(1)->sizes.size(), 3u);
  auto rows = keep(ask("aten::view.default", {keep(norm.at(0)), list({batch * length, 8})}).at(0));
  auto projected = keep(ask("aten::mm.default", {rows, tensor({8, 24})}).at(0));
  auto heads = keep(ask("aten::view.default", {projected, list({batch, length, 3, 2, 4})}).at(0));
  auto turned = keep(ask("aten::permute.default", {heads, list({2, 0, 3, 1, 4})}).at(0));
  auto parts = ask("aten::unbind.int", {turned, Sym(0)});
  ASSERT_EQ(parts.size(), 3u);
  std::vector<ShapeArg> attention = {keep(parts[0]), keep(parts[1]), keep(parts[2]), 0.0,
                                     false,          ir::None{},     ir::None{}};
  auto attended = ask("aten::_scaled_dot_product_flash_attention_for_cpu.default", attention);
  ASSERT_EQ(attended.size(), 2u);
  auto back = keep(ask("aten::transpose.int", {keep(attended[0]), Sym(1), Sym(2)}).at(0));
  auto merged = keep(ask("aten::view.default", {back, list({batch, length, 8})}).at(0));
  auto scores = keep(ask("aten::_softmax.default", {merged, Sym(-1), false}).at(0));
  EXPECT_EQ(text("aten::sum.dim_IntList", {scores, list({0}), true, ir::None{}}), "f32[1, s1, 8]{s1*8, 8, 1} cpu");
  EXPECT_EQ(guards(), "");
}

TEST_F(Symbolic, BroadcastingTwoSymbolsIsGuarded) {
  const Sym other = env.new_symbol(4, "c");
  EXPECT_EQ(text("aten::mul.Tensor", {tensor({batch, 3}), tensor({other, 3})}), "f32[s0, 3]{3, 1} cpu");
  EXPECT_EQ(env.guards().size(), 1u);
  EXPECT_EQ(env.known(ir::Relation::Eq, batch, other), true);
  EXPECT_EQ(text("aten::mul.Tensor", {tensor({batch, 3}), tensor({1, 3})}), "f32[s0, 3]{3, 1} cpu");
  EXPECT_EQ(text("aten::mul.Tensor", {tensor({batch, 3}), tensor({length, 3})}), "");
}

TEST_F(Symbolic, InferredSizeNeedsNoDivision) {
  EXPECT_EQ(text("aten::view.default", {tensor({batch, length, 8}), list({-1, 8})}), "f32[s0*s1, 8]{8, 1} cpu");
  EXPECT_EQ(text("aten::view.default", {tensor({batch, length, 8}), list({batch, -1})}), "f32[s0, s1*8]{s1*8, 1} cpu");
  EXPECT_EQ(guards(), "");
}

TEST_F(Symbolic, SplitFixesTheNumberOfPieces) {
  auto pieces = ask("aten::split.Tensor", {tensor({length, 2}), Sym(3), Sym(0)});
  ASSERT_EQ(pieces.size(), 3u);
  EXPECT_EQ(env.hint(pieces[2]->sizes[0]), 1);
  EXPECT_FALSE(pieces[2]->sizes[0].is_constant());
  EXPECT_FALSE(env.guards().empty());
  const std::vector<int64_t> two_more = {4, 9}, three_more = {4, 10};
  for (const ir::SymGuard& guard : env.guards()) EXPECT_TRUE(guard.holds(two_more)) << guard.str();
  bool refused = false;
  for (const ir::SymGuard& guard : env.guards()) refused |= !guard.holds(three_more);
  EXPECT_TRUE(refused);
}

TEST_F(Symbolic, ConvolutionSizes) {
  auto image = tensor({batch, 3, 32, 32});
  std::vector<ShapeArg> args = {image, tensor({8, 3, 3, 3}), ir::None{}, list({2, 2}), list({1, 1}), list({1, 1}),
                                false, list({0, 0}),         Sym(1)};
  EXPECT_EQ(text("aten::convolution.default", args), "f32[s0, 8, 16, 16]{2048, 256, 16, 1} cpu");
  EXPECT_EQ(guards(), "");
}

TEST_F(Symbolic, FlashAttentionGivesItsLengths) {
  const Device cuda{1, 0};
  auto query = tensor({batch, 2, length, 64}, DType::bfloat16, cuda);
  auto results =
      ask("aten::_scaled_dot_product_flash_attention.default", {query, query, query, 0.0, true, false, ir::None{}});
  ASSERT_EQ(results.size(), 9u);
  EXPECT_FALSE(results[4].has_value());
  ASSERT_EQ(ints.size(), 2u);
  EXPECT_TRUE(ints[0].same(length));
}

TEST_F(Symbolic, AWrappedNumberPromotesAsPythonDoes) {
  EXPECT_EQ(text("aten::mul.Tensor", {tensor({batch}, DType::bfloat16), 2.5}), "bf16[s0]{1} cpu");
  EXPECT_EQ(text("aten::mul.Tensor", {tensor({batch}, DType::int64), 2.5}), "f32[s0]{1} cpu");
  EXPECT_EQ(text("aten::mul.Tensor", {tensor({batch}, DType::bool_), Sym(2)}), "i64[s0]{1} cpu");
}

TEST(Table, RowsAreFoundByTheirNames) {
  EXPECT_GT(all_ops().size(), 650u);
  for (const OpRow* row : all_ops()) EXPECT_EQ(find_op(ir::Op(row->name)), row);
  EXPECT_EQ(find_op(ir::Op("aten::nonzero.default")), nullptr);
}

}  // namespace
}  // namespace graphlift::ops
