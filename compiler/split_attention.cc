#include "compiler/split_attention.h"

#include <algorithm>
#include <set>
#include <utility>

#include "base/status.h"
#include "graph/group_workload.h"
#include "graph/grouping.h"
#include "ir/narrow_target.h"

namespace hone::compiler {
namespace {

using graph::Graph;
using graph::Group;
using graph::NodeId;

constexpr char kMark[] = "attention";

bool IsMarked(const graph::Node& node) { return node.attributes.contains(kMark); }

bool HasMarked(const Graph& graph, const Group& group) {
  return group.kind == graph::GroupKind::kKernel &&
         std::ranges::any_of(group.nodes, [&](NodeId n) { return IsMarked(graph.nodes[n]); });
}

absl::StatusOr<ModelKernel> KernelOf(const Graph& graph,
                                     const std::vector<std::vector<NodeId>>& readers,
                                     const Group& group) {
  HONE_ASSIGN_OR_RETURN(graph::GroupWorkload made, graph::BuildWorkload(graph, readers, group));
  return MakeKernel(std::move(made.workload), "");
}

/// A kernel of attention and the nodes that it computes where it is first run.
struct Whole {
  int kernel = -1;
  std::set<NodeId> nodes;
};

int Find(const std::vector<ModelKernel>& kernels, const std::string& hash) {
  const auto it = std::ranges::find(kernels, hash, &ModelKernel::hash);
  return it == kernels.end() ? -1 : static_cast<int>(it - kernels.begin());
}

absl::StatusOr<std::vector<Whole>> Wanted(const ModelSteps& model, const ir::Target& target,
                                          const std::function<bool(int kernel)>& wanted) {
  const Graph& graph = model.graph;
  std::vector<Whole> wholes;
  HONE_ASSIGN_OR_RETURN(const std::vector<Group> groups, graph::GroupNodes(graph, target));
  const std::vector<std::vector<NodeId>> readers = graph.Readers();
  for (const Group& group : groups) {
    if (!HasMarked(graph, group)) continue;
    HONE_ASSIGN_OR_RETURN(const ModelKernel made, KernelOf(graph, readers, group));
    const int kernel = Find(model.kernels, made.hash);
    if (kernel < 0 || !wanted(kernel)) continue;
    if (std::ranges::find(wholes, kernel, &Whole::kernel) != wholes.end()) continue;
    wholes.push_back({kernel, std::set<NodeId>(group.nodes.begin(), group.nodes.end())});
  }
  return wholes;
}

}  // namespace

absl::StatusOr<std::vector<SplitAttention>> SplitAttentions(
    const ModelSteps& model, const ir::Target& target,
    const std::function<bool(int kernel)>& wanted) {
  std::vector<SplitAttention> result;
  if (std::ranges::none_of(model.graph.nodes, IsMarked)) return result;
  HONE_ASSIGN_OR_RETURN(const std::vector<Whole> wholes, Wanted(model, target, wanted));
  if (wholes.empty()) return result;
  for (const Whole& whole : wholes) result.push_back({.kernel = whole.kernel, .parts = {}});
  Graph graph = model.graph;
  for (graph::Node& node : graph.nodes) node.attributes.erase(kMark);
  HONE_ASSIGN_OR_RETURN(const std::vector<Group> groups, graph::GroupNodes(graph, target));
  const std::vector<std::vector<NodeId>> readers = graph.Readers();
  for (const Group& group : groups) {
    if (group.kind != graph::GroupKind::kKernel) continue;
    for (size_t i = 0; i < wholes.size(); ++i) {
      if (std::ranges::none_of(group.nodes, [&](NodeId n) { return wholes[i].nodes.contains(n); }))
        continue;
      HONE_ASSIGN_OR_RETURN(ModelKernel part, KernelOf(graph, readers, group));
      if (Find(model.kernels, part.hash) < 0) result[i].parts.push_back(std::move(part));
    }
  }
  return result;
}

absl::StatusOr<int> CountStaleAttention(const ModelSteps& model, const ir::Target& target,
                                        const std::vector<FoundTrace>& found, TraceSource& traces) {
  if (!traces.HasRecords()) return 0;
  // A default that was judged was tuned.
  const auto is_unknown = [&](int kernel) {
    const FoundTrace& trace = found[static_cast<size_t>(kernel)];
    return trace.rung != "exact" && !trace.judged;
  };
  HONE_ASSIGN_OR_RETURN(const std::vector<SplitAttention> attentions,
                        SplitAttentions(model, target, is_unknown));
  int stale = 0;
  for (const SplitAttention& attention : attentions) {
    bool recorded = false;
    for (const ModelKernel& part : attention.parts) {
      if (recorded) break;
      HONE_ASSIGN_OR_RETURN(recorded, traces.HasExact(part.workload, part.hash, target));
    }
    stale += recorded ? 1 : 0;
  }
  traces.EndLookUps();
  return stale;
}

}  // namespace hone::compiler
