// Owns: tests of maximum flow against all cuts of small networks.
#include "autograd/max_flow.h"

#include <gtest/gtest.h>

#include <random>
#include <tuple>

namespace graphlift::autograd {
namespace {

TEST(MaxFlow, NoPathAndNoFiniteCut) {
  MaxFlow flow;
  int source = flow.add_vertex(), sink = flow.add_vertex(), middle = flow.add_vertex();
  flow.add_edge(source, middle, 5);
  EXPECT_EQ(flow.run(source, sink), 0);
  flow.add_edge(middle, sink, MaxFlow::kInfinite);
  EXPECT_EQ(flow.run(source, sink), 5);
  flow.add_edge(source, middle, MaxFlow::kInfinite);
  EXPECT_EQ(flow.run(source, sink), MaxFlow::kInfinite);
}

TEST(MaxFlow, AgreesWithAllCuts) {
  for (unsigned seed = 0; seed < 400; ++seed) {
    std::mt19937 engine(seed);
    auto pick = [&](int low, int high) { return std::uniform_int_distribution<int>(low, high)(engine); };
    int vertices = pick(2, 8);
    std::vector<std::tuple<int, int, int64_t>> edges;
    MaxFlow flow;
    for (int i = 0; i < vertices; ++i) flow.add_vertex();
    for (int i = pick(0, 20); i > 0; --i) {
      auto [from, to, capacity] = std::tuple(pick(0, vertices - 1), pick(0, vertices - 1), int64_t{pick(0, 4)});
      if (from == to) continue;
      edges.emplace_back(from, to, capacity);
      flow.add_edge(from, to, capacity);
    }
    // Vertex 0 is the source, 1 the sink; bit i: vertex i is on the sink's side.
    int64_t best = INT64_MAX;
    unsigned smallest = 0;
    for (unsigned side = 0; side < (1u << vertices); ++side) {
      if ((side & 1) || !(side & 2)) continue;
      int64_t cut = 0;
      for (auto [from, to, capacity] : edges)
        if (!(side >> from & 1) && (side >> to & 1)) cut += capacity;
      if (cut < best) {
        best = cut;
        smallest = side;
      } else if (cut == best) {
        smallest &= side;  // minimum cuts are closed under intersection
      }
    }
    ASSERT_EQ(flow.run(0, 1), best) << seed;
    auto side = flow.sink_side(1);
    for (int i = 0; i < vertices; ++i) ASSERT_EQ(side[i], (smallest >> i & 1) != 0) << seed;
  }
}

}  // namespace
}  // namespace graphlift::autograd
