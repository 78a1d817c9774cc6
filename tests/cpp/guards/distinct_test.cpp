// Groups of symbols or objects that must differ: decided as all pairs would be, whatever changed since the last check.
#include "guards/distinct.h"

#include <random>

#include "guards/scene.h"

namespace graphlift::guards {

namespace {

bool by_pairs(const std::vector<int64_t>& values, size_t apart) {
  for (size_t i = 0; i < apart; ++i)
    for (size_t j = 0; j < values.size(); ++j)
      if (i != j && values[i] == values[j]) return false;
  return true;
}

TEST(Distinct, IsWhatAllPairsAre) {
  std::mt19937 random(7);
  for (size_t apart : {1u, 3u, 20u}) {
    std::vector<int32_t> first(apart), others(15);
    for (size_t i = 0; i < apart; ++i) first[i] = static_cast<int32_t>(i);
    for (size_t i = 0; i < others.size(); ++i) others[i] = static_cast<int32_t>(apart + i);
    const Distinct distinct(first, others);
    std::vector<int64_t> values(apart + others.size());
    for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<int64_t>(i) * 1000;
    for (int round = 0; round < 3000; ++round) {
      const size_t changes = random() % 12;
      for (size_t c = 0; c < changes; ++c)
        values[random() % values.size()] = static_cast<int64_t>(random() % 400) * 100;
      const bool holds = distinct.holds([&](int32_t key) { return values[static_cast<size_t>(key)]; });
      ASSERT_EQ(holds, by_pairs(values, apart));
      if (holds) continue;
      const auto [left, right] = distinct.alike();
      EXPECT_NE(left, right);
      EXPECT_EQ(values[static_cast<size_t>(left)], values[static_cast<size_t>(right)]);
      for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<int64_t>(i) * 1000 + round;
    }
  }
}

TEST(Distinct, ObjectsAtOrigins) {
  Scene scene("a = [1]; b = [2]; c = [3]; d = [4]");
  GuardSet guards;
  OriginTable& origins = guards.origins();
  std::vector<OriginId> local;
  for (int i = 0; i < 4; ++i) local.push_back(origins.root(OriginKind::Local, i));
  guards.add_distinct_objects({local[0], local[1]}, {local[2], local[3]});
  Checked tree(std::move(guards));
  EXPECT_TRUE(tree.holds(scene.roots({"a", "b", "c", "d"})));
  EXPECT_TRUE(tree.holds(scene.roots({"a", "b", "c", "c"})));
  EXPECT_FALSE(tree.holds(scene.roots({"a", "b", "c", "a"})));
  EXPECT_EQ(tree.tree().explain(scene.roots({"a", "b", "c", "a"})), "L[0] is L[3]");
  EXPECT_FALSE(tree.holds(scene.roots({"a", "a", "c", "d"})));
  EXPECT_TRUE(tree.holds(scene.roots({"a", "b", "c", "d"})));
  EXPECT_EQ(tree.tree().text(), "no other one is L[0], L[1]; among L[2], L[3]\n");
}

TEST(Distinct, BoundSymbols) {
  Scene scene("x = 5; y = 6");
  GuardSet guards;
  OriginTable& origins = guards.origins();
  guards.bind_symbol(origins.root(OriginKind::Local, 0), 0);
  guards.bind_symbol(origins.root(OriginKind::Local, 1), 1);
  guards.add_distinct_symbols({0}, {1});
  Checked tree(std::move(guards), {}, 2);
  EXPECT_TRUE(tree.holds(scene.roots({"x", "y"})));
  EXPECT_FALSE(tree.holds(scene.roots({"x", "x"})));
  EXPECT_EQ(tree.tree().explain(scene.roots({"x", "x"})), "s0 and s1 are the same");
}

}  // namespace

}  // namespace graphlift::guards
