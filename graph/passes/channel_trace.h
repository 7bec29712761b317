#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "graph/graph.h"

namespace hone::graph {

/// Where channels stand in a tensor: along one dimension, `inner` places side by side for each of
/// `ids`, of which several may be the same channel (queries, keys and values side by side).
struct ChannelPlace {
  size_t axis = 0;
  int64_t inner = 1;
  std::vector<int> ids;
};

/// The places along the dimension that stay with these channels, in their order.
std::vector<int64_t> PlacesLeft(const ChannelPlace& place, const std::vector<bool>& keep);
/// How many places of ids [first, end) stay.
int64_t NumLeft(const ChannelPlace& place, const std::vector<bool>& keep, size_t first, size_t end);

/// A constant that shrinks with the channels: an input of a node.
struct ChannelConstant {
  NodeId node = -1;
  size_t input = 0;
  ChannelPlace place;
};

/// Who else knows of a channel: the node (-1: none), and the value that it reads or makes.
struct ChannelEnd {
  NodeId node = -1;
  ValueId value = kNoValue;
};

/// Channels on their way from the products that make them to the products that read them, through
/// operators that compute each from itself alone.
struct ChannelTrace {
  int channels = 0;                        ///< ids are below
  std::map<ValueId, ChannelPlace> values;  ///< computed ones, whose shapes hold the channels
  std::vector<ChannelConstant> makers;     ///< weights, by the dimension of what they make
  std::vector<ChannelConstant> readers;    ///< weights, by the dimension that they sum over
  std::vector<ChannelConstant> constants;  ///< others: biases, operands, depthwise weights
  /// Nodes with attributes that count channels: depthwise Conv, Reshape, Slice, Pad.
  std::vector<NodeId> counting;
  /// Channels that others know of as well, which stay: outputs of the graph, operators that mix
  /// them.
  std::map<int, ChannelEnd> ends;
  /// So many places of the data that are summed over go together where a reshaping on the way keeps
  /// them together, as heads of an attention; 0: none.
  int64_t together = 0;
};

/// Follows channels through a graph that is not changed meanwhile, but for constants and extents.
/// Holds a reference to it. Thread-safe.
class ChannelTracer {
 public:
  explicit ChannelTracer(const Graph& graph);

  /// The channels that a MatMul, Conv or ConvTranspose with known weights of f32 sums over, `inner`
  /// places each. Nothing where it is none, or `inner` does not divide its terms.
  std::optional<ChannelTrace> TraceFrom(NodeId reader, int64_t inner) const;

 private:
  const Graph& graph_;
  const std::vector<std::vector<NodeId>> readers_;
  std::vector<bool> is_output_;
};

}  // namespace hone::graph
