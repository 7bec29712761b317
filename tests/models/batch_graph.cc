#include "tests/models/batch_graph.h"

#include <utility>
#include <vector>

#include "base/status.h"
#include "graph/op.h"

namespace hone {
namespace {

/// The positions of an image for every image: the first of each tuple counts images.
graph::ConstantPtr PositionsOf(const graph::TensorData& one, int64_t images) {
  std::vector<int64_t> shape = one.type.shape;
  shape[0] = images;
  std::vector<int64_t> all;
  for (int64_t image = 0; image < images; ++image) {
    std::vector<int64_t> values = one.AsInt64s();
    for (size_t i = 0; i < values.size(); i += static_cast<size_t>(shape.back()))
      values[i] += image;
    all.insert(all.end(), values.begin(), values.end());
  }
  return graph::MakeInt64s(std::move(shape), all);
}

}  // namespace

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
    if (node.op == "GatherND") {
      const graph::ConstantPtr one = graph.values[static_cast<size_t>(node.inputs[1])].constant;
      if (one != nullptr && one->type.shape.front() == 1) {
        node.inputs[1] = graph.AddConstant(PositionsOf(*one, images));
      }
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
