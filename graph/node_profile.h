#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"

#include "graph/graph.h"

// What grouping needs to know of a node, read off the Stages of its operator's definition: never
// off its name.
namespace hone::graph {

enum class NodeRole : uint8_t {
  kMove,         ///< maps that load, select and nothing else (transpose, pad, gather, concat)
  kMap,          ///< maps with arithmetic
  kRowWise,      ///< reductions over rows and a map of the same shape (softmax, layer norm)
  kReduction,    ///< reads each element once, gives fewer (global pooling, sums, arg-max)
  kContraction,  ///< sums of products of two tensors with different axes (matmul, convolution)
  kWindow,       ///< overlapping windows (pooling, depthwise convolution)
  kScan,         ///< a sequential axis (LSTM, cumulative sum)
  kExtern,       ///< a routine of the runtime
};
constexpr bool IsAnchor(NodeRole role) {
  return role >= NodeRole::kRowWise && role <= NodeRole::kScan;
}

/// How one operand is read, over all Stages of the node.
struct OperandRead {
  bool read = false;
  bool bijective = false;  ///< the last Stage's axes are a bijection of its elements (row-wise:
                           ///< reductions' axes too)
  bool identity = false;   ///< bijective, and axis k is dimension k
  bool once = false;       ///< no element is read by two points of the last Stage's axes
};

struct NodeProfile {
  NodeRole role = NodeRole::kMove;
  std::vector<OperandRead> reads;  ///< by input of the node
  int64_t flops = 0;  ///< kMove, kMap: per element of the result, moves, min, max and select free
  int instructions = 0;          ///< kMove, kMap: about how many an element costs in code
  bool expensive = false;        ///< has a division, root, power or transcendental
  bool data_dependent = false;   ///< loads at indices that are loaded
  int num_sources = 0;           ///< kMove: tensors that elements come from
  int64_t row_bytes = 0;         ///< kRowWise: bytes of one row of the operand
  bool contiguous_rows = false;  ///< kRowWise: its rows are its innermost dimensions
  /// The result is this part of the first operand, in its order: elements from its start (0 for a
  /// reshape).
  std::optional<int64_t> alias_offset;
};

absl::StatusOr<NodeProfile> ProfileNode(const Graph& graph, NodeId node);

}  // namespace hone::graph
