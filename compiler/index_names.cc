#include "compiler/index_names.h"

#include <algorithm>
#include <set>
#include <string>

#include "ir/checked_index.h"

namespace hone::compiler {
namespace {

using graph::ValueId;

/// Which of the Workload's inputs hold indices, as positions among them.
std::set<size_t> IndexInputs(const ir::Workload& workload) {
  const std::vector<int> inputs = workload.Inputs();
  std::set<size_t> found;
  for (const ir::CheckedIndex& check : ir::CheckedIndices(workload)) {
    const auto it = std::ranges::find(inputs, check.tensor);
    if (it != inputs.end()) found.insert(static_cast<size_t>(it - inputs.begin()));
  }
  return found;
}

/// The first node of the group that takes an index from `value`, or from what the group makes of
/// it; else the first that reads it.
std::string LookUpNode(const graph::Graph& graph, const graph::Group& group, ValueId value) {
  std::set<ValueId> derived = {value};
  std::string reader;
  for (const graph::NodeId id : group.nodes) {
    const graph::Node& node = graph.nodes[id];
    if (std::ranges::none_of(node.inputs, [&](ValueId v) { return derived.contains(v); })) continue;
    if (reader.empty()) reader = node.origin;
    const auto own = graph::BuildNodeWorkload(graph, id);
    if (own.ok() && std::ranges::any_of(IndexInputs(own->workload), [&](size_t input) {
          return derived.contains(own->inputs[input]);
        })) {
      return node.origin;
    }
    derived.insert(node.outputs.begin(), node.outputs.end());
  }
  return reader;
}

}  // namespace

std::vector<ir::PlanName> IndexNames(const graph::Graph& graph, const graph::Group& group,
                                     const graph::GroupWorkload& workload) {
  std::vector<ir::PlanName> names;
  for (const size_t input : IndexInputs(workload.workload)) {
    const ValueId value = workload.inputs[input];
    std::string node = LookUpNode(graph, group, value);
    if (node.empty()) continue;
    names.push_back({.input = static_cast<int32_t>(input),
                     .node = std::move(node),
                     .value = graph.values[value].name});
  }
  return names;
}

}  // namespace hone::compiler
