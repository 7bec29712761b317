#include "graph/onnx_quantise/probe_model.h"

#include <map>
#include <utility>

#include "fmt/format.h"

#include "graph/onnx_quantise/graph_editor.h"

namespace hone::graph::onnx_quantise {

std::string WeightsInput(size_t layer) { return fmt::format("hone.weights.{}", layer); }
std::string BiasInput(size_t layer) { return fmt::format("hone.bias.{}", layer); }
std::string RoundedInput(size_t layer) { return fmt::format("hone.rounded.{}", layer); }
std::string SmoothInput(size_t group) { return fmt::format("hone.smooth.{}", group); }
std::string ScaleInput(size_t group) { return fmt::format("hone.scale.{}", group); }
std::string ZeroInput(size_t group) { return fmt::format("hone.zero.{}", group); }
std::string DataOutput(size_t group) { return fmt::format("hone.data.{}", group); }

bool HasBias(const Layer& layer) { return layer.bias_data != nullptr; }

namespace {

class ProbeMaker {
 public:
  ProbeMaker(const SourceModel& source, Scheme scheme)
      : source_(source), scheme_(scheme), editor_(*source.proto) {}

  std::string Run() {
    for (size_t i = 0; i < source_.layers.size(); ++i) AddInputs(i);
    for (size_t g = 0; g < source_.groups.size(); ++g) AddGroupInputs(g);
    for (int i = 0; i < source_.proto->graph().node_size(); ++i) Take(i);
    for (size_t g = 0; g < source_.groups.size(); ++g) editor_.AddOutput(DataOutput(g));
    return editor_.Finish().SerializeAsString();
  }

 private:
  void AddInputs(size_t i) {
    const Layer& layer = source_.layers[i];
    editor_.AddInput(WeightsInput(i), onnx::TensorProto::FLOAT, layer.weights_data->type.shape);
    if (RoundsData(scheme_)) editor_.AddInput(RoundedInput(i), onnx::TensorProto::BOOL, {});
    if (HasBias(layer))
      editor_.AddInput(BiasInput(i), onnx::TensorProto::FLOAT, layer.bias_data->type.shape);
    of_node_[layer.node] = i;
    if (HasBias(layer)) bias_of_node_[layer.bias_node].push_back(i);
  }

  void AddGroupInputs(size_t g) {
    editor_.AddInput(SmoothInput(g), onnx::TensorProto::FLOAT, source_.groups[g].spread);
    if (scheme_ != Scheme::kInt8) return;
    editor_.AddInput(ScaleInput(g), onnx::TensorProto::FLOAT, {});
    editor_.AddInput(ZeroInput(g), onnx::TensorProto::UINT8, {});
  }

  std::string Rounded(size_t g, const std::string& data) {
    const std::string name = fmt::format("hone.restored.{}", g);
    if (scheme_ == Scheme::kBf16) {
      onnx::NodeProto& narrow = editor_.AddNode("Cast", {data}, name + ".narrow");
      SetInt(narrow, "to", onnx::TensorProto::BFLOAT16);
      const std::string halves = narrow.output(0);
      onnx::NodeProto& wide = editor_.AddNode("Cast", {halves}, name);
      SetInt(wide, "to", onnx::TensorProto::FLOAT);
      return wide.output(0);
    }
    if (scheme_ == Scheme::kInt8) {
      const std::string bytes =
          editor_.AddNode("QuantizeLinear", {data, ScaleInput(g), ZeroInput(g)}, name + ".bytes")
              .output(0);
      return editor_.AddNode("DequantizeLinear", {bytes, ScaleInput(g), ZeroInput(g)}, name)
          .output(0);
    }
    onnx::NodeProto& dynamic = editor_.AddNode("DynamicQuantizeLinear", {data}, name + ".bytes");
    dynamic.add_output(editor_.FreshName(name + ".scale"));
    dynamic.add_output(editor_.FreshName(name + ".zero"));
    const std::vector<std::string> parts(dynamic.output().begin(), dynamic.output().end());
    return editor_.AddNode("DequantizeLinear", parts, name).output(0);
  }

  /// The group's value, smoothed and rounded, made before its first layer.
  void MakeData(size_t g) {
    if (rounded_.contains(g)) return;
    const std::string data =
        editor_.AddNode("Mul", {source_.groups[g].value, SmoothInput(g)}, DataOutput(g)).output(0);
    rounded_[g] = RoundsData(scheme_) ? Rounded(g, data) : data;
  }

  void Take(int index) {
    const onnx::NodeProto& node = source_.proto->graph().node(index);
    const auto layer = of_node_.find(index);
    std::string data;
    if (layer != of_node_.end()) {
      const size_t i = layer->second, g = source_.layers[i].group;
      MakeData(g);
      data = rounded_[g];
      if (RoundsData(scheme_)) {
        data = editor_
                   .AddNode("Where", {RoundedInput(i), data, source_.groups[g].value},
                            fmt::format("hone.read.{}", i))
                   .output(0);
      }
    }
    onnx::NodeProto& own = editor_.Keep(node);
    if (layer != of_node_.end()) {
      own.set_input(0, data);
      own.set_input(1, WeightsInput(layer->second));
    }
    if (const auto bias = bias_of_node_.find(index); bias != bias_of_node_.end()) {
      for (const size_t i : bias->second) own.set_input(source_.layers[i].bias_input, BiasInput(i));
    }
  }

  const SourceModel& source_;
  const Scheme scheme_;
  GraphEditor editor_;
  std::map<int, size_t> of_node_;
  std::map<int, std::vector<size_t>> bias_of_node_;
  std::map<size_t, std::string> rounded_;
};

}  // namespace

std::string ProbeModel(const SourceModel& source, Scheme scheme) {
  return ProbeMaker(source, scheme).Run();
}

}  // namespace hone::graph::onnx_quantise
