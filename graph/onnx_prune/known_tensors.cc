#include "graph/onnx_prune/known_tensors.h"

namespace hone::graph::onnx_prune {

std::map<std::string, const onnx::TensorProto*> KnownTensors(const onnx::GraphProto& graph) {
  std::map<std::string, const onnx::TensorProto*> known;
  for (const onnx::TensorProto& tensor : graph.initializer()) known[tensor.name()] = &tensor;
  for (const onnx::NodeProto& node : graph.node()) {
    if (node.op_type() == "Constant" && node.attribute_size() == 1 &&
        node.attribute(0).name() == "value")
      known[node.output(0)] = &node.attribute(0).t();
    // Exporters write equal tensors once.
    if (node.op_type() == "Identity" && node.input_size() == 1) {
      const auto it = known.find(node.input(0));
      if (it != known.end()) known[node.output(0)] = it->second;
    }
  }
  return known;
}

}  // namespace hone::graph::onnx_prune
