#include <algorithm>
#include <utility>

#include "base/status.h"
#include "graph/op.h"
#include "graph/passes/known_values.h"
#include "graph/passes/passes.h"
#include "graph/passes/rewriter.h"

namespace hone::graph {
namespace {

// Above this size a result is folded only when its operands are as large: weights may be transposed
// and scaled, but a scalar is not expanded into the package.
constexpr int64_t kSmallBytes = 64 << 10;

bool IsWorthFolding(const Graph& graph, const Node& node) {
  int64_t operand_bytes = 0;
  for (ValueId input : node.inputs) {
    if (input == kNoValue) continue;
    if (graph.values[input].constant == nullptr) return false;
    operand_bytes += graph.values[input].type.Bytes();
  }
  int64_t result_bytes = 0;
  for (ValueId output : node.outputs) {
    if (output != kNoValue) result_bytes += graph.values[output].type.Bytes();
  }
  if (result_bytes > std::max(kSmallBytes, operand_bytes)) return false;
  const OpDefinition* definition = FindOp(node.op);
  return definition != nullptr && definition->express != nullptr;
}

}  // namespace

absl::StatusOr<int> FoldConstants(Graph& graph, const PassContext& context) {
  int folded = 0;
  Rewriter rewriter(graph);
  for (const Node& old : rewriter.old_nodes()) {
    rewriter.Keep(old);
    if (!IsWorthFolding(graph, graph.nodes.back())) continue;
    const NodeId id = static_cast<NodeId>(graph.nodes.size()) - 1;
    HONE_ASSIGN_OR_RETURN(auto results, ComputeNode(graph, id, context.evaluator));
    for (auto& [value, data] : results) {
      graph.values[value].constant = std::move(data);
      graph.values[value].producer = -1;
    }
    graph.nodes.pop_back();
    ++folded;
  }
  HONE_RETURN_IF_ERROR(rewriter.Finish());
  return folded;
}

}  // namespace hone::graph
