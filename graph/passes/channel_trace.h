#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "graph/graph.h"

namespace hone::graph {

/// Where channels stand in a tensor: along one dimension, `inner` places side by side for each.
struct ChannelPlace {
  size_t axis = 0;
  int64_t inner = 1;
  bool operator==(const ChannelPlace&) const = default;
};

/// A constant that shrinks with the channels: an input of a node.
struct ChannelConstant {
  NodeId node = -1;
  size_t input = 0;
  ChannelPlace place;
};

/// Channels on their way from the products that make them to the products that read them, through
/// operators that compute each from itself alone. No others know of them.
struct ChannelTrace {
  int64_t channels = 0;
  std::map<ValueId, ChannelPlace> values;   ///< computed ones, whose shapes hold the channels
  std::vector<ChannelConstant> makers;      ///< weights, by the dimension of what they make
  std::vector<ChannelConstant> readers;     ///< weights, by the dimension that they sum over
  std::vector<ChannelConstant> constants;   ///< others: biases, operands, depthwise weights
  std::vector<NodeId> depthwise, reshapes;  ///< nodes with an attribute that counts channels
};

/// Follows channels through a graph that is not changed meanwhile, but for constants and extents.
/// Holds a reference to it. Thread-safe.
class ChannelTracer {
 public:
  explicit ChannelTracer(const Graph& graph);

  /// The channels that a MatMul or Conv with known weights of f32 sums over; where its data were
  /// heads of an attention, a head is a channel if single columns cannot be told apart. Nothing
  /// where others know of them: an output of the graph, an operator that mixes them.
  std::optional<ChannelTrace> TraceFrom(NodeId reader) const;

 private:
  const Graph& graph_;
  const std::vector<std::vector<NodeId>> readers_;
  std::vector<bool> is_output_;
};

}  // namespace hone::graph
