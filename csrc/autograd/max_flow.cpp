// Owns: Dinic's algorithm, without recursion: graphs are thousands of vertices deep.
// Must not: know graphs of operators.
#include "autograd/max_flow.h"

#include <algorithm>

namespace graphlift::autograd {

int MaxFlow::add_vertex() {
  out_.emplace_back();
  return static_cast<int>(out_.size()) - 1;
}

void MaxFlow::add_edge(int from, int to, int64_t capacity) {
  out_[from].push_back(static_cast<int>(edges_.size()));
  edges_.push_back({to, capacity});
  out_[to].push_back(static_cast<int>(edges_.size()));
  edges_.push_back({from, 0});
}

// Distances to the sink along residual edges: paths that lead nowhere are never entered.
bool MaxFlow::make_levels(int source, int sink) {
  level_.assign(out_.size(), -1);
  std::vector<int> queue{sink};
  level_[sink] = 0;
  for (size_t head = 0; head < queue.size(); ++head) {
    int vertex = queue[head];
    for (int edge : out_[vertex]) {
      int from = edges_[edge].to;
      if (edges_[edge ^ 1].residual == 0 || level_[from] >= 0) continue;
      level_[from] = level_[vertex] + 1;
      queue.push_back(from);
    }
  }
  return level_[source] >= 0;
}

// One path in the level graph; 0 when there is none left.
int64_t MaxFlow::augment(int source, int sink) {
  std::vector<int> path;
  int vertex = source;
  while (vertex != sink) {
    bool advanced = false;
    for (size_t& i = next_[vertex]; i < out_[vertex].size(); ++i) {
      const Edge& edge = edges_[out_[vertex][i]];
      if (edge.residual == 0 || level_[edge.to] != level_[vertex] - 1) continue;
      path.push_back(out_[vertex][i]);
      vertex = edge.to;
      advanced = true;
      break;
    }
    if (advanced) continue;
    if (path.empty()) return 0;
    vertex = edges_[path.back() ^ 1].to;
    path.pop_back();
    ++next_[vertex];
  }
  int64_t amount = kInfinite;
  for (int edge : path) amount = std::min(amount, edges_[edge].residual);
  for (int edge : path) {
    edges_[edge].residual -= amount;
    edges_[edge ^ 1].residual += amount;
  }
  return amount;
}

int64_t MaxFlow::run(int source, int sink) {
  int64_t total = 0;
  while (make_levels(source, sink)) {
    next_.assign(out_.size(), 0);
    while (int64_t amount = augment(source, sink)) {
      total += amount;
      if (amount >= kInfinite / 2 || total >= kInfinite) return kInfinite;
    }
  }
  return total;
}

std::vector<bool> MaxFlow::sink_side(int sink) const {
  std::vector<bool> side(out_.size(), false);
  std::vector<int> queue{sink};
  side[sink] = true;
  while (!queue.empty()) {
    int vertex = queue.back();
    queue.pop_back();
    for (int edge : out_[vertex]) {
      int from = edges_[edge].to;
      if (edges_[edge ^ 1].residual == 0 || side[from]) continue;
      side[from] = true;
      queue.push_back(from);
    }
  }
  return side;
}

}  // namespace graphlift::autograd
