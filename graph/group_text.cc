#include "fmt/format.h"

#include "graph/group_workload.h"
#include "graph/grouping.h"

namespace hone::graph {
namespace {

const char* KindText(GroupKind kind) {
  switch (kind) {
    case GroupKind::kKernel: return "kernel";
    case GroupKind::kAlias: return "alias";
    case GroupKind::kConcat: return "concat";
    case GroupKind::kExtern: return "extern";
  }
  return "";
}

}  // namespace

std::string ToText(const Graph& graph, const std::vector<Group>& groups) {
  std::string text;
  const std::vector<std::vector<NodeId>> readers = graph.Readers();
  for (size_t g = 0; g < groups.size(); ++g) {
    const Group& group = groups[g];
    text += fmt::format("group {} {}", g, KindText(group.kind));
    if (group.anchor >= 0) text += fmt::format(" anchor {}", graph.nodes[group.anchor].op);
    text += ":";
    for (size_t k = 0; k < group.nodes.size(); ++k) {
      const Node& node = graph.nodes[group.nodes[k]];
      text += k == 0 ? " " : ", ";
      text += node.op;
      for (const char* name : {"fn", "kind"}) {
        const auto found = node.attributes.find(name);
        if (found == node.attributes.end()) continue;
        if (const auto* value = std::get_if<std::string>(&found->second)) text += "." + *value;
      }
    }
    const std::vector<ValueId> outputs = GroupOutputs(graph, readers, group.nodes);
    text += fmt::format(" -> %{}\n", fmt::join(outputs, ", %"));
  }
  return text;
}

}  // namespace hone::graph
