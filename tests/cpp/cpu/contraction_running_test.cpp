// How contractions behave at run time: many threads, torch's thread count, parallel regions, remembered weights, the
// cache.
#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <thread>

#include "backends/cpu/contraction_form.h"
#include "cpu/product.h"

namespace graphlift::cpu {
namespace {

constexpr double kRunningTolerance = 4e-6;

// torch.set_num_threads for a scope.
class ThreadCount {
 public:
  explicit ThreadCount(int count) : before_(at::get_num_threads()) { at::set_num_threads(count); }
  ~ThreadCount() { at::set_num_threads(before_); }

 private:
  const int before_;
};

TEST(ContractionRunning, EightThreadsShareOne) {
  for (std::string_view name : contraction_implementations()) {
    Product shape = product(at::randn({32, 600}), at::randn({512, 600}).t());
    ContractionSpec spec = shape.spec();
    spec.remember_b = true;
    const auto contraction = make_contraction(name, spec);
    if (!contraction) continue;
    std::vector<double> worst(8, 0.0);
    std::vector<std::thread> threads;
    for (size_t t = 0; t < 8; ++t) {
      threads.emplace_back([&, t] {
        for (int i = 0; i < 20; ++i) {
          Product own = product(at::randn({32, 600}), shape.b);
          own.copies = shape.copies;
          own.run(*contraction);
          worst[t] = std::max(worst[t], error(own.c, own.expected()));
        }
      });
    }
    for (std::thread& it : threads) it.join();
    for (double it : worst) EXPECT_LE(it, kRunningTolerance) << name;
  }
}

TEST(ContractionRunning, FollowsTorchsThreadCount) {
  Product it = product({}, 200, 300, 400);
  const auto contraction = find_contraction(it.spec());
  ASSERT_TRUE(contraction);
  for (int count : {1, 2, 3, 1, 4}) {
    const ThreadCount scope(count);
    it.c.zero_();
    it.run(*contraction);
    EXPECT_LE(error(it.c, it.expected()), kRunningTolerance) << count;
    EXPECT_EQ(at::get_num_threads(), count);
  }
}

TEST(ContractionRunning, InsideAParallelRegion) {
  const ThreadCount scope(2);
  Product shape = product({}, 64, 96, 80);
  const auto contraction = find_contraction(shape.spec());
  ASSERT_TRUE(contraction);
  std::vector<Product> products;
  for (int i = 0; i < 8; ++i) products.push_back(product({}, 64, 96, 80));
  at::parallel_for(0, 8, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) products[static_cast<size_t>(i)].run(*contraction);
  });
  for (const Product& it : products) EXPECT_LE(error(it.c, it.expected()), kRunningTolerance);
}

TEST(ContractionRunning, TheSameSpecIsMadeOnce) {
  const ContractionSpec spec = product({}, 5, 6, 7).spec();
  EXPECT_EQ(find_contraction(spec), find_contraction(spec));
  ContractionSpec other = spec;
  other.post.push_back({.kind = PostOpKind::Relu});
  EXPECT_NE(find_contraction(spec), find_contraction(other));
  EXPECT_NE(spec.hash(), other.hash());
}

TEST(ContractionRunning, RememberedWeightsFollowTheirVersion) {
  Product it = product(at::randn({16, 64}), at::randn({128, 64}).t());
  ContractionSpec spec = it.spec();
  spec.remember_b = true;
  const auto contraction = make_contraction("onednn packed", spec);
  if (!contraction) GTEST_SKIP() << "no oneDNN";
  for (int step = 0; step < 4; ++step) {
    for (int run = 0; run < 3; ++run) {
      it.run(*contraction);
      EXPECT_LE(error(it.c, it.expected()), kRunningTolerance);
    }
    it.b.mul_(1.5);
  }
  // Other memory at any address, also one that was freed: never the old weights.
  for (int i = 0; i < 50; ++i) {
    it.b = at::randn({128, 64}).t();
    for (int run = 0; run < 2; ++run) it.run(*contraction);
    EXPECT_LE(error(it.c, it.expected()), kRunningTolerance);
  }
  // Swapped under the same tensor.
  const at::Tensor next = at::randn({128, 64}).t();
  for (int run = 0; run < 2; ++run) it.run(*contraction);
  it.b.set_data(next);
  it.run(*contraction);
  EXPECT_LE(error(it.c, it.expected()), kRunningTolerance);
}

TEST(ContractionRunning, TheListIsAsMeasured) {
  auto chosen = [](const Product& it) {
    const auto found = find_contraction(it.spec());
    return found ? found->implementation() : "";
  };
  if (!make_contraction("onednn", product({}, 2, 2, 2).spec())) GTEST_SKIP() << "no oneDNN";
  const auto linear = [](int64_t m, int64_t n, int64_t k) { return product(at::randn({m, k}), at::randn({n, k}).t()); };
  EXPECT_EQ(chosen(linear(1, 64, 64)), "torch gemm");
  EXPECT_EQ(chosen(linear(1, 64, 64).then(PostOpKind::Relu)), "");
  EXPECT_EQ(chosen(linear(8, 64, 64)).find("onednn swapped"), std::string::npos);
  EXPECT_EQ(chosen(linear(64, 1024, 512)).find("onednn swapped"), 0u);
  EXPECT_EQ(chosen(linear(64, 10, 512)).find("onednn swapped"), 0u);
  EXPECT_EQ(chosen(product({}, 64, 1024, 512)).find("onednn swapped"), std::string::npos);
}

TEST(ContractionRunning, WrongSpecsAreRefusedWithAReason) {
  std::string why;
  ContractionSpec spec = product({}, 5, 6, 7).spec();
  spec.c.row = 0;
  EXPECT_FALSE(find_contraction(spec, &why));
  EXPECT_NE(why.find("share memory"), std::string::npos) << why;
  spec = product({3}, 5, 6, 7).spec();
  spec.a.batch.clear();
  EXPECT_FALSE(find_contraction(spec, &why));
  EXPECT_FALSE(make_contraction("no such", product({}, 5, 6, 7).spec(), &why));
  EXPECT_NE(why, "");
}

}  // namespace
}  // namespace graphlift::cpu
