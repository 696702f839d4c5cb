// The minimum cut of a flow network, by Dinic's algorithm.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace umbra::aot {

class FlowNetwork {
 public:
  static constexpr int64_t kUnlimited = INT64_MAX / 4;
  explicit FlowNetwork(size_t vertices) : edges_of_(vertices), level_(vertices), next_(vertices) {}
  void add_edge(size_t from, size_t to, int64_t capacity);
  /// Sends as much as fits from source to sink; true for each vertex that can still be reached from the source.
  std::vector<bool> cut(size_t source, size_t sink);

 private:
  struct Edge {
    size_t to;
    int64_t left;
  };
  bool find_levels(size_t source, size_t sink);
  int64_t push(size_t source, size_t sink);
  std::vector<Edge> edges_;  // an edge and its reverse stand next to each other
  std::vector<std::vector<uint32_t>> edges_of_;
  std::vector<int32_t> level_;
  std::vector<uint32_t> next_;
};

}  // namespace umbra::aot
