// Contractions against torch in float64: sizes, strides, batches, post-ops, dtypes, by every implementation that can.
#include <ATen/Version.h>
#include <gtest/gtest.h>

#include <thread>

#include "backends/cpu/contraction_form.h"
#include "backends/cpu/onednn.h"
#include "base/text.h"
#include "cpu/product.h"

namespace graphlift::cpu {
namespace {

constexpr double kTolerance = 4e-6, kTolerance16 = 8e-3;

double tolerance(const Product& it) { return it.c.scalar_type() == at::kBFloat16 ? kTolerance16 : kTolerance; }

// Runs each implementation that makes this spec; the number of those.
int check_all(Product it, const std::string& what) {
  ContractionSpec spec = it.spec();
  spec.remember_b = true;
  const at::Tensor before = it.c.clone();
  const at::Tensor expected = it.expected();
  int count = 0;
  for (std::string_view name : contraction_implementations()) {
    const auto contraction = make_contraction(name, spec);
    if (!contraction) continue;
    ++count;
    for (int run = 0; run < 3; ++run) {  // packed weights: seen, packed, found
      it.c.copy_(before);
      it.run(*contraction);
      EXPECT_LE(error(it.c, expected, spec.k), tolerance(it))
          << what << ": " << name << " (" << contraction->implementation() << ") " << spec.str();
    }
  }
  return count;
}

bool has_onednn() {
  std::string why;
  return make_contraction("onednn", product({}, 2, 2, 2).spec(), &why) != nullptr;
}

TEST(Contraction, OneDnnIsFoundInTheEnvironment) {
  std::string why;
  EXPECT_TRUE(find_contraction(product({}, 4, 4, 4).spec(), &why)) << why;
  EXPECT_TRUE(has_onednn()) << why;
}

TEST(Contraction, Sizes) {
  for (int64_t m : {0, 1, 2, 17, 64})
    for (int64_t n : {0, 1, 3, 16, 130})
      for (int64_t k : {1, 5, 64, 513})
        EXPECT_GE(check_all(product({}, m, n, k), "sizes"), 1) << m << ' ' << n << ' ' << k;
}

TEST(Contraction, SumOfNoTerms) {
  std::string why;
  const auto found = find_contraction(product({}, 2, 3, 0).spec(), &why);
  if (found) {
    check_all(product({}, 2, 3, 0), "no terms");
  } else {
    EXPECT_NE(why, "");
  }
}

TEST(Contraction, TransposedOperandsAndPitches) {
  const at::Tensor wide = at::randn({40, 90});
  const std::vector<std::pair<at::Tensor, const char*>> as = {
      {at::randn({24, 33}), "rows"},
      {at::randn({33, 24}).t(), "columns"},
      {wide.slice(0, 0, 24).slice(1, 7, 40), "rows with a pitch"},
      {wide.t().slice(0, 0, 24).slice(1, 2, 35), "columns with a pitch"}};
  const std::vector<std::pair<at::Tensor, const char*>> bs = {
      {at::randn({33, 20}), "rows"},
      {at::randn({20, 33}).t(), "columns"},
      {wide.slice(0, 0, 33).slice(1, 30, 50), "rows with a pitch"},
      {wide.t().slice(0, 0, 33).slice(1, 3, 23), "columns with a pitch"}};
  for (const auto& [a, a_words] : as)
    for (const auto& [b, b_words] : bs)
      EXPECT_GE(check_all(product(a, b), cat("a by ", a_words, ", b by ", b_words)), 1);
  // Both strides with gaps: nobody here computes it.
  EXPECT_EQ(check_all(product(at::randn({24, 66}).slice(1, 0, 66, 2), bs[0].first), "gaps"), 0);
}

// Rows of B that push each other out of the cache go to BLAS, unless oneDNN copies B anyway.
TEST(Contraction, CollidingRows) {
  auto chosen = [](const Product& product) {
    const auto found = find_contraction(product.spec());
    return found ? found->implementation() : std::string();
  };
  if (!make_contraction("onednn", product({}, 2, 2, 2).spec()) ||
      !make_contraction("gemm", product({}, 2, 2, 2).spec()))
    GTEST_SKIP() << "one of the two is absent";
  const bool blas = !onednn_packs_in_blocks();
  EXPECT_EQ(chosen(product({}, 64, 1024, 96)) == "torch gemm", blas);
  EXPECT_NE(chosen(product({}, 64, 1040, 96)), "torch gemm");
  EXPECT_NE(chosen(product({}, 1024, 1024, 96)), "torch gemm");
  EXPECT_NE(chosen(product(at::randn({64, 96}), at::randn({1024, 96}).t())), "torch gemm");
  Product finished = product({}, 64, 1024, 96);
  finished.then(PostOpKind::Relu);
  EXPECT_EQ(chosen(finished).empty(), blas);
  EXPECT_GE(check_all(finished, "finished all the same, when asked for"), 1);
}

TEST(Contraction, LayoutsOfTheResult) {
  Product pitch = product({}, 12, 20, 8);
  pitch.c = at::zeros({12, 50}).slice(1, 3, 23);
  EXPECT_GE(check_all(pitch, "c with a pitch"), 1);
  Product columns = product({}, 12, 20, 8);
  columns.c = at::zeros({20, 12}).t();
  EXPECT_GE(check_all(columns, "c by columns"), 1);
  columns.then(PostOpKind::Add, at::randn({20, 12}).t());
  EXPECT_GE(check_all(columns, "c by columns, and an operand"), 1);
}

TEST(Contraction, Vectors) {
  for (int64_t k : {1, 7, 256}) {
    EXPECT_GE(check_all(product(at::randn({1, k}), at::randn({30, k}).t()), "row by matrix"), 1);
    EXPECT_GE(check_all(product(at::randn({30, k}), at::randn({k, 1})), "matrix by column"), 1);
    EXPECT_GE(check_all(product(at::randn({30, k}), at::randn({k, 9}).slice(1, 2, 3)), "by a column of a matrix"), 1);
    EXPECT_GE(check_all(product(at::randn({k, 9}).slice(1, 2, 3).t(), at::randn({k, 5})), "a column of a matrix by"),
              1);
    EXPECT_GE(check_all(product(at::randn({1, k}), at::randn({k, 1})), "row by column"), 1);
    EXPECT_GE(check_all(product(at::randn({6, 1}), at::randn({1, k})), "outer product"), 1);
  }
}

TEST(Contraction, Batches) {
  EXPECT_GE(check_all(product({3}, 4, 5, 6), "one"), 1);
  EXPECT_GE(check_all(product({2, 3}, 4, 5, 6), "two"), 1);
  EXPECT_GE(check_all(product({2, 1, 3}, 4, 5, 6), "three"), 1);
  EXPECT_GE(check_all(product({0}, 4, 5, 6), "none"), 1);
  // [b, t, h, d] seen as [b, h, t, d]: attention without copies.
  const at::Tensor q = at::randn({2, 10, 3, 8}).transpose(1, 2), k = at::randn({2, 10, 3, 8}).transpose(1, 2);
  EXPECT_GE(check_all(product(q, k.transpose(2, 3)), "scores"), 1);
  Product values = product(at::randn({2, 3, 10, 10}), k);
  values.c = at::zeros({2, 10, 3, 8}).transpose(1, 2);
  EXPECT_GE(check_all(values, "values"), 1);
  const at::Tensor qkv = at::randn({2, 10, 3, 3, 8});
  EXPECT_GE(check_all(product(qkv.select(2, 0).transpose(1, 2), qkv.select(2, 1).permute({0, 2, 3, 1})), "of qkv"), 1);
}

TEST(Contraction, BroadcastBatches) {
  const at::Tensor a = at::randn({4, 5, 6}), b = at::randn({6, 7});
  Product shared_b = product(a, b.expand({4, 6, 7}));
  EXPECT_GE(check_all(shared_b, "b"), 1);
  ContractionSpec folded = canonical(shared_b.spec());
  EXPECT_TRUE(folded.batch.empty());
  EXPECT_EQ(folded.m, 20);
  shared_b.then(PostOpKind::Add, at::randn({4, 5, 7})).then(PostOpKind::Mul, at::randn({7}));
  EXPECT_GE(check_all(shared_b, "b, operands"), 1);
  EXPECT_TRUE(canonical(shared_b.spec()).batch.empty());
  EXPECT_GE(check_all(product(at::randn({5, 6}).expand({4, 5, 6}), at::randn({4, 6, 7})), "a"), 1);
  EXPECT_GE(check_all(product(at::randn({4, 1, 6}), b.expand({4, 6, 7})), "rows of one"), 1);
  EXPECT_GE(check_all(product(at::randn({2, 3, 5, 6}), at::randn({3, 6, 7}).expand({2, 3, 6, 7})), "outer of b"), 1);
}

TEST(Contraction, BiasAndPostOps) {
  for (int64_t m : {1, 32}) {
    Product base = product(at::randn({m, 64}), at::randn({300, 64}).t());
    base.bias = at::randn({300});
    EXPECT_GE(check_all(base, "bias"), 1);
    for (PostOpKind kind : {PostOpKind::Relu, PostOpKind::GeluErf, PostOpKind::GeluTanh, PostOpKind::Silu,
                            PostOpKind::Sigmoid, PostOpKind::Tanh})
      EXPECT_GE(check_all(Product(base).then(kind), std::string(name(kind))), 1);
    EXPECT_GE(check_all(Product(base).then(PostOpKind::LeakyRelu, 0.1f), "leaky relu"), 1);
    EXPECT_GE(check_all(Product(base).then(PostOpKind::Linear, 0.125f, 1), "linear"), 1);
    const at::Tensor full = at::randn({m, 300}), row = at::rand({300}) + 1, scalar = at::rand({1}) + 1;
    for (PostOpKind kind : {PostOpKind::Add, PostOpKind::Sub, PostOpKind::Mul}) {
      EXPECT_GE(check_all(Product(base).then(kind, full), cat("full ", name(kind))), 1);
      EXPECT_GE(check_all(Product(base).then(kind, row), cat("row ", name(kind))), 1);
      EXPECT_GE(check_all(Product(base).then(kind, scalar), cat("scalar ", name(kind))), 1);
    }
    EXPECT_GE(check_all(Product(base).then(PostOpKind::Div, row), "div"), 1);
    Product many = base;
    many.then(PostOpKind::Linear, 0.5f)
        .then(PostOpKind::Add, full)
        .then(PostOpKind::GeluErf)
        .then(PostOpKind::Mul, row);
    EXPECT_GE(check_all(many, "many"), 1);
  }
}

TEST(Contraction, Accumulates) {
  Product it = product({}, 10, 20, 30);
  it.c = at::randn({10, 20});
  EXPECT_GE(check_all(Product(it).then(PostOpKind::Accumulate, 1), "beta 1"), 1);
  EXPECT_GE(check_all(Product(it).then(PostOpKind::Accumulate, 0.5f), "beta 0.5"), 1);
  const int least = at::get_cpu_capability() == "AVX512" ? 1 : 0;  // other processors have none that takes it
  EXPECT_GE(check_all(Product(it).then(PostOpKind::GeluErf).then(PostOpKind::Accumulate, 1), "behind gelu"), least);
}

TEST(Contraction, NotANumberAndInfinity) {
  const double nan = std::numeric_limits<double>::quiet_NaN(), infinity = std::numeric_limits<double>::infinity();
  Product it = product({}, 6, 40, 8);
  it.a[0][0] = nan;
  it.a[1][0] = infinity;
  it.a[2][1] = -infinity;
  it.b.abs_();
  EXPECT_GE(check_all(it, "plain"), 1);
  for (PostOpKind kind :
       {PostOpKind::GeluTanh, PostOpKind::Silu, PostOpKind::Sigmoid, PostOpKind::Tanh, PostOpKind::Relu})
    check_all(Product(it).then(kind), std::string(name(kind)));
  it.a[1][0] = 0;  // gelu of infinity is NaN in torch's float32 kernel, not in float64
  check_all(Product(it).then(PostOpKind::GeluErf), "gelu");
}

TEST(Contraction, BFloat16) {
  if (!make_contraction("onednn", product({}, 8, 8, 8, at::kBFloat16).spec())) GTEST_SKIP() << "no bfloat16 here";
  for (int64_t m : {1, 5, 64})
    for (int64_t k : {1, 31, 256}) EXPECT_GE(check_all(product({}, m, 48, k, at::kBFloat16), "sizes"), 1);
  Product wide = product({}, 8, 48, 100, at::kBFloat16);
  wide.c = at::zeros({8, 48});
  EXPECT_GE(check_all(wide, "into float32"), 1);
  Product linear = product(at::randn({8, 100}).to(at::kBFloat16), at::randn({48, 100}).to(at::kBFloat16).t());
  linear.bias = at::randn({48}).to(at::kBFloat16);
  linear.then(PostOpKind::GeluErf).then(PostOpKind::Add, at::randn({8, 48}).to(at::kBFloat16));
  EXPECT_GE(check_all(linear, "linear, gelu, add"), 1);
  EXPECT_GE(check_all(product({3}, 8, 48, 20, at::kBFloat16), "batch"), 1);
}

TEST(Contraction, Double) {
  EXPECT_GE(check_all(product({}, 8, 48, 20, at::kDouble), "plain"), 1);
  EXPECT_GE(check_all(product({4}, 8, 48, 20, at::kDouble), "batch"), 1);
  std::string why;
  Product gelu = product({}, 8, 48, 20, at::kDouble);
  EXPECT_FALSE(find_contraction(gelu.then(PostOpKind::GeluErf).spec(), &why));
  EXPECT_NE(why, "");
}

}  // namespace
}  // namespace graphlift::cpu
