#include "aot/min_cut.h"

#include <algorithm>

namespace umbra::aot {

void FlowNetwork::add_edge(size_t from, size_t to, int64_t capacity) {
  edges_of_[from].push_back(static_cast<uint32_t>(edges_.size()));
  edges_.push_back({to, capacity});
  edges_of_[to].push_back(static_cast<uint32_t>(edges_.size()));
  edges_.push_back({from, 0});
}

bool FlowNetwork::find_levels(size_t source, size_t sink) {
  std::fill(level_.begin(), level_.end(), -1);
  std::vector<size_t> queue{source};
  level_[source] = 0;
  for (size_t i = 0; i < queue.size(); ++i)
    for (uint32_t e : edges_of_[queue[i]])
      if (edges_[e].left > 0 && level_[edges_[e].to] < 0) {
        level_[edges_[e].to] = level_[queue[i]] + 1;
        queue.push_back(edges_[e].to);
      }
  return level_[sink] >= 0;
}

// One path along rising levels, found without recursion: graphs can be thousands of nodes deep.
int64_t FlowNetwork::push(size_t source, size_t sink) {
  std::vector<uint32_t> path;
  size_t at = source;
  while (at != sink) {
    bool advanced = false;
    for (; next_[at] < edges_of_[at].size(); ++next_[at]) {
      uint32_t e = edges_of_[at][next_[at]];
      if (edges_[e].left <= 0 || level_[edges_[e].to] != level_[at] + 1) continue;
      path.push_back(e);
      at = edges_[e].to;
      advanced = true;
      break;
    }
    if (advanced) continue;
    if (path.empty()) return 0;
    uint32_t back = path.back();
    path.pop_back();
    at = edges_[back ^ 1].to;
    ++next_[at];
  }
  int64_t amount = kUnlimited;
  for (uint32_t e : path) amount = std::min(amount, edges_[e].left);
  for (uint32_t e : path) {
    edges_[e].left -= amount;
    edges_[e ^ 1].left += amount;
  }
  return amount;
}

std::vector<bool> FlowNetwork::cut(size_t source, size_t sink) {
  while (find_levels(source, sink)) {
    std::fill(next_.begin(), next_.end(), 0);
    while (push(source, sink) > 0) {
    }
  }
  std::vector<bool> reached(level_.size());
  for (size_t i = 0; i < level_.size(); ++i) reached[i] = level_[i] >= 0;
  return reached;
}

}  // namespace umbra::aot
