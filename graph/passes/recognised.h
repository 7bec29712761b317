#pragma once

#include <map>

#include "absl/status/statusor.h"

#include "graph/graph.h"
#include "graph/passes/matcher.h"

namespace hone::graph {

/// Activation nodes to put in the place of others, by the node that makes the result of the
/// formula.
struct RecognisedActivation {
  ValueId x = kNoValue;
  Attributes attributes;
};
using RecognisedActivations = std::map<NodeId, RecognisedActivation>;

/// The node whose result is the `wanted` polynomial of `x` and `f` and has x's type, where every
/// value between `f` and it is read by the next one only (so that nothing is computed twice); or
/// -1. `f` itself may be it.
NodeId FindResult(const Graph& graph, const Matcher& matcher, ValueId x, ValueId f,
                  const Polynomial& wanted);

/// Puts them there; what only the formula needed is left for RemoveDeadCode. Gives their number.
absl::StatusOr<int> ReplaceByActivations(Graph& graph, const RecognisedActivations& found);

}  // namespace hone::graph
