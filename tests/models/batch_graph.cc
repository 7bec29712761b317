#include "tests/models/batch_graph.h"

#include <vector>

#include "base/status.h"
#include "graph/op.h"

namespace hone {

absl::StatusOr<graph::Graph> BatchOf(graph::Graph graph, int64_t images) {
  for (const graph::ValueId input : graph.inputs) {
    graph.values[static_cast<size_t>(input)].type.shape[0] *= images;
  }
  for (graph::Node& node : graph.nodes) {
    for (const char* const name : {"shape", "sizes"}) {
      const auto found = node.attributes.find(name);
      if (found == node.attributes.end()) continue;
      auto* const shape = std::get_if<std::vector<int64_t>>(&found->second);
      if (shape != nullptr && !shape->empty() && shape->front() == 1) shape->front() = images;
    }
    HONE_ASSIGN_OR_RETURN(const std::vector<graph::TensorType> types,
                          graph::InferTypes(graph::MakeCall(graph, node)));
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      if (node.outputs[i] == graph::kNoValue) continue;
      graph.values[static_cast<size_t>(node.outputs[i])].type = types[i];
    }
  }
  return graph;
}

}  // namespace hone
