#include "graph/onnx_prune/pruned_model.h"

#include <cstring>
#include <map>
#include <utility>
#include <vector>

#include "base/status.h"
#include "graph/onnx_import/tensor_reader.h"
#include "graph/onnx_prune/known_tensors.h"
#include "graph/onnx_quantise/graph_editor.h"
#include "graph/onnx_quantise/standalone_model.h"

namespace hone::graph::onnx_prune {
namespace {

using onnx_quantise::Assignment;
using onnx_quantise::GraphEditor;
using onnx_quantise::Layer;
using onnx_quantise::SourceModel;

class ModelWriter {
 public:
  ModelWriter(const SourceModel& source, const Assignment& assignment,
              const DroppedChannels& dropped)
      : source_(source),
        assignment_(assignment),
        dropped_(dropped),
        editor_(*source.proto),
        known_(KnownTensors(source.proto->graph())),
        reader_(source.proto, source.folder, source.linked_folder) {}

  absl::StatusOr<std::string> Run() {
    const onnx::GraphProto& graph = source_.proto->graph();
    for (size_t i = 0; i < source_.layers.size(); ++i) ChangeLayer(i);
    HONE_RETURN_IF_ERROR(SliceOthers());
    std::map<int, std::vector<std::pair<int, ConstantPtr>>> by_node;
    for (auto& [place, data] : changed_) by_node[place.first].emplace_back(place.second, data);
    for (int n = 0; n < graph.node_size(); ++n) {
      onnx::NodeProto own = graph.node(n);
      for (const auto& [input, data] : by_node[n]) {
        std::vector<float> values(static_cast<size_t>(data->type.NumElements()));
        std::memcpy(values.data(), data->bytes.data(), data->bytes.size());
        own.set_input(input, editor_.ReplaceFloats(own.input(input), data->type.shape, values));
      }
      if (const auto it = dropped_.counts.find(n); it != dropped_.counts.end())
        HONE_RETURN_IF_ERROR(Recount(own, it->second));
      editor_.Keep(own);
    }
    // What it says of shapes between the nodes is no longer so.
    if (!dropped_.empty()) editor_.model().mutable_graph()->clear_value_info();
    return StandaloneModel(source_, editor_.Finish());
  }

 private:
  void Change(int node, int input, ConstantPtr data) {
    changed_[{node, input}] = dropped_.Apply(node, input, std::move(data));
  }

  void ChangeLayer(size_t i) {
    if (assignment_.layers[i].kept()) return;
    const Layer& layer = source_.layers[i];
    Change(layer.node, 1, WeightsAfter(source_, assignment_, i));
    const std::vector<float>& bias = assignment_.layers[i].bias;
    if (bias.empty()) return;
    const auto bytes = std::as_bytes(std::span(bias));
    Change(layer.bias_node, layer.bias_input,
           MakeConstant(layer.bias_data->type, {bytes.begin(), bytes.end()}));
  }

  absl::Status SliceOthers() {
    for (const auto& [place, slices] : dropped_.slices) {
      if (changed_.contains(place)) continue;
      const auto& [node, input] = place;
      const std::string& name = source_.proto->graph().node(node).input(input);
      HONE_ASSIGN_OR_RETURN(ConstantPtr data, reader_.Read(*known_.at(name)));
      Change(node, input, std::move(data));
    }
    return absl::OkStatus();
  }

  absl::Status Recount(onnx::NodeProto& node, const std::vector<DroppedChannels::Count>& counts) {
    std::map<int, std::vector<int64_t>> inputs;
    for (const DroppedChannels::Count& count : counts) {
      if (!count.attribute.empty()) {
        SetAttribute(node, count);
        continue;
      }
      if (!inputs.contains(count.input)) {
        HONE_ASSIGN_OR_RETURN(const ConstantPtr data,
                              reader_.Read(*known_.at(node.input(count.input))));
        inputs[count.input] = data->AsInt64s();
      }
      inputs[count.input][count.element] = count.number;
    }
    for (const auto& [input, numbers] : inputs)
      node.set_input(input, editor_.ReplaceInts(node.input(input), numbers));
    return absl::OkStatus();
  }

  static void SetAttribute(onnx::NodeProto& node, const DroppedChannels::Count& count) {
    for (onnx::AttributeProto& each : *node.mutable_attribute()) {
      if (each.name() != count.attribute) continue;
      if (each.ints_size() > 0)
        each.set_ints(static_cast<int>(count.element), count.number);
      else
        each.set_i(count.number);
    }
  }

  const SourceModel& source_;
  const Assignment& assignment_;
  const DroppedChannels& dropped_;
  GraphEditor editor_;
  const std::map<std::string, const onnx::TensorProto*> known_;
  onnx_import::TensorReader reader_;
  std::map<std::pair<int, int>, ConstantPtr> changed_;  ///< by node and input
};

}  // namespace

absl::StatusOr<std::string> PrunedModel(const SourceModel& source, const Assignment& assignment,
                                        const DroppedChannels& dropped) {
  return ModelWriter(source, assignment, dropped).Run();
}

}  // namespace hone::graph::onnx_prune
