#include "graph/passes/recognised.h"

#include "base/status.h"
#include "graph/passes/rewriter.h"

namespace hone::graph {

NodeId FindResult(const Graph& graph, const Matcher& matcher, ValueId x, ValueId f,
                  const Polynomial& wanted) {
  constexpr int kMostSteps = 8;
  ValueId value = f;
  for (int step = 0; step < kMostSteps; ++step) {
    const TensorType& type = graph.values[value].type;
    const auto result = matcher.ReadAs(value, x, f);
    if (!result) return -1;
    if (type == graph.values[x].type && IsNearly(*result, wanted, type.dtype))
      return graph.values[value].producer;
    const Node* reader = matcher.OnlyReader(value);
    if (reader == nullptr || reader->outputs.size() != 1) return -1;
    value = reader->outputs[0];
  }
  return -1;
}

absl::StatusOr<int> ReplaceByActivations(Graph& graph, const RecognisedActivations& found) {
  if (found.empty()) return 0;
  Rewriter rewriter(graph);
  for (size_t n = 0; n < rewriter.old_nodes().size(); ++n) {
    const Node& node = rewriter.old_nodes()[n];
    const auto at = found.find(static_cast<NodeId>(n));
    if (at == found.end()) {
      rewriter.Keep(node);
      continue;
    }
    HONE_ASSIGN_OR_RETURN(const ValueId result,
                          rewriter.Add("Activation", node.origin, {rewriter.Mapped(at->second.x)},
                                       at->second.attributes));
    rewriter.Replace(node.outputs[0], result);
  }
  HONE_RETURN_IF_ERROR(rewriter.Finish());
  return static_cast<int>(found.size());
}

}  // namespace hone::graph
