// Owns: maximum flow and the minimum cut nearest the sink (Dinic's algorithm).
// Must not: know graphs of operators.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace graphlift::autograd {

class MaxFlow {
 public:
  // More than any sum of finite capacities.
  static constexpr int64_t kInfinite = int64_t{1} << 60;

  int add_vertex();
  void add_edge(int from, int to, int64_t capacity);
  // Saturates. kInfinite when no finite cut exists.
  int64_t run(int source, int sink);
  // After run(): the vertices that can still reach the sink. Of all minimum cuts, this sink side is the smallest.
  std::vector<bool> sink_side(int sink) const;

 private:
  struct Edge {
    int to;
    int64_t residual;
  };

  bool make_levels(int source, int sink);
  int64_t augment(int source, int sink);

  // Edge e's reverse is e ^ 1.
  std::vector<Edge> edges_;
  std::vector<std::vector<int>> out_;
  std::vector<int> level_;
  std::vector<size_t> next_;
};

}  // namespace graphlift::autograd
