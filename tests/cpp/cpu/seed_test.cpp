// Owns: the seed of torch's random numbers, the same for each test of this program, alone or among others.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

namespace graphlift::cpu {
namespace {

class Seeded final : public testing::EmptyTestEventListener {
  void OnTestStart(const testing::TestInfo&) override { at::manual_seed(20); }
};

const bool listening = [] {
  testing::UnitTest::GetInstance()->listeners().Append(new Seeded);
  return true;
}();

TEST(Seed, IsTheSameInEachTest) {
  const at::Tensor drawn = at::rand({4});
  at::manual_seed(20);
  EXPECT_TRUE(at::equal(drawn, at::rand({4}))) << listening;
}

}  // namespace
}  // namespace graphlift::cpu
