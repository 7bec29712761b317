#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"

#include "graph/evaluator.h"
#include "graph/graph.h"

namespace hone::graph {

/// What a node makes, by value.
using KnownResults = std::vector<std::pair<ValueId, ConstantPtr>>;

/// The results of a node all of whose inputs are constants of the graph.
absl::StatusOr<KnownResults> ComputeNode(const Graph& graph, NodeId id, Evaluator& evaluator);

/// Values that follow from constants alone, computed when they are asked for: those too large to be
/// folded into the graph too, as a mask made by an index comparison is. Holds references to both;
/// the graph may not change. Not thread-safe.
class KnownValues {
 public:
  KnownValues(const Graph& graph, Evaluator& evaluator);

  bool IsKnown(ValueId id) const { return id != kNoValue && known_[static_cast<size_t>(id)]; }
  /// Null for what is not known, has more than 2^28 bytes or is made by more than 64 nodes.
  absl::StatusOr<ConstantPtr> ValueOf(ValueId id);

 private:
  static constexpr int64_t kMostBytes = int64_t{1} << 28;
  static constexpr size_t kMostNodes = 64;

  const Graph& graph_;
  Evaluator& evaluator_;
  std::vector<bool> known_;
  Graph values_;  ///< the graph with the values computed so far as constants
};

}  // namespace hone::graph
