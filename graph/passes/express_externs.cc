#include <algorithm>
#include <string>
#include <utility>

#include "base/status.h"
#include "graph/group_limits.h"
#include "graph/op.h"
#include "graph/passes/passes.h"
#include "graph/passes/rewriter.h"

namespace hone::graph {

absl::StatusOr<int> ExpressExterns(Graph& graph, const PassContext& context) {
  const KindLimits* const limits = LimitsOfKinds().Find(context.target.kind);
  if (limits == nullptr || limits->Of(context.target).runs_externs) return 0;
  Rewriter rewriter(graph);
  int changes = 0;
  for (const Node& old : rewriter.old_nodes()) {
    Node node = rewriter.Mapped(old);
    const OpDefinition* const definition = FindOp(node.op);
    const bool empty = std::ranges::any_of(node.outputs, [&](ValueId id) {
      // An output that nobody asks for has no value.
      return id >= 0 && std::ranges::count(graph.values[id].type.shape, 0) > 0;
    });
    if (definition == nullptr || definition->extern_name.empty() || empty ||
        FindOp(node.op + "Stages") == nullptr) {
      rewriter.Keep(old);
      continue;
    }
    node.op += "Stages";
    rewriter.Keep(std::move(node));
    ++changes;
  }
  HONE_RETURN_IF_ERROR(rewriter.Finish());
  return changes;
}

}  // namespace hone::graph
