#include "graph/onnx_quantise/source_model.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <utility>

#include "fmt/format.h"

#include "base/status.h"
#include "graph/onnx_import/mapped_file.h"
#include "graph/onnx_import/onnx.pb.h"
#include "graph/onnx_import/tensor_reader.h"

namespace hone::graph::onnx_quantise {
namespace {

constexpr int64_t kLeastOpset = 13;

absl::Status Invalid(std::string message) { return absl::InvalidArgumentError(std::move(message)); }

absl::StatusOr<std::shared_ptr<onnx::ModelProto>> Parse(const std::string& path, SourceUse use) {
  HONE_ASSIGN_OR_RETURN(const auto file, onnx_import::MappedFile::Open(path));
  auto model = std::make_shared<onnx::ModelProto>();
  const auto size =
      static_cast<int>(std::min<size_t>(file->bytes().size(), std::numeric_limits<int>::max()));
  if (!model->ParseFromArray(file->bytes().data(), size) || !model->has_graph())
    return Invalid(fmt::format("'{}' is no ONNX model, or was cut off", path));
  for (const onnx::OperatorSetIdProto& set : model->opset_import()) {
    const bool ours = set.domain().empty() || set.domain() == "ai.onnx";
    if (!ours || use != SourceUse::kQuantise || set.version() >= kLeastOpset) continue;
    return Invalid(
        fmt::format("'{}' is of operator set {}; scales for each output channel need {} or later: "
                    "convert it first (onnx.version_converter.convert_version(model, 17))",
                    path, set.version(), kLeastOpset));
  }
  return model;
}

/// Finds layers in the main graph. Values are known by name.
class LayerFinder {
 public:
  LayerFinder(SourceModel& model, std::shared_ptr<const void> owner, const std::string& folder,
              const std::string& linked_folder)
      : model_(model),
        graph_(model.proto->graph()),
        reader_(std::move(owner), folder, linked_folder) {
    for (const onnx::TensorProto& tensor : graph_.initializer()) known_[tensor.name()] = &tensor;
    for (int i = 0; i < graph_.node_size(); ++i) {
      const onnx::NodeProto& node = graph_.node(i);
      if (node.op_type() == "Constant" && node.attribute_size() == 1 &&
          node.attribute(0).name() == "value")
        known_[node.output(0)] = &node.attribute(0).t();
      for (const std::string& input : node.input()) readers_[input].push_back(i);
    }
    for (const onnx::ValueInfoProto& output : graph_.output()) outputs_.insert(output.name());
  }

  absl::Status Run() {
    for (int i = 0; i < graph_.node_size(); ++i) {
      const onnx::NodeProto& node = graph_.node(i);
      const bool ours = node.domain().empty() || node.domain() == "ai.onnx";
      const std::string& op = node.op_type();
      if (!ours || (op != "MatMul" && op != "Gemm" && op != "Conv")) continue;
      Layer layer;
      layer.op = op;
      layer.node = i;
      layer.name = node.name().empty() ? node.output(0) : node.name();
      HONE_ASSIGN_OR_RETURN(const std::string why, Read(node, &layer));
      if (!why.empty()) {
        model_.left_out.push_back({layer.name, op, why});
        continue;
      }
      FindBias(node, &layer);
      Group(node.input(0), &layer);
      model_.layers.push_back(std::move(layer));
    }
    for (InputGroup& group : model_.groups) FindProducer(group);
    return absl::OkStatus();
  }

 private:
  absl::StatusOr<ConstantPtr> Known(const std::string& name) {
    const auto it = known_.find(name);
    if (it == known_.end()) return ConstantPtr();
    auto data = reader_.Read(*it->second);
    if (!data.ok()) return Annotate(data.status(), fmt::format("tensor '{}'", name));
    return data;
  }

  static int64_t IntOf(const onnx::NodeProto& node, const char* name, int64_t otherwise) {
    for (const onnx::AttributeProto& each : node.attribute())
      if (each.name() == name) return each.i();
    return otherwise;
  }
  static bool IsOne(const onnx::NodeProto& node, const char* name) {
    for (const onnx::AttributeProto& each : node.attribute())
      if (each.name() == name) return each.f() == 1.0F;
    return true;
  }

  /// Why the node is no layer; empty where it is one.
  absl::StatusOr<std::string> Read(const onnx::NodeProto& node, Layer* layer) {
    layer->weights = node.input(1);
    HONE_ASSIGN_OR_RETURN(layer->weights_data, Known(layer->weights));
    if (layer->weights_data == nullptr) return std::string("its weights are computed");
    if (known_.contains(node.input(0))) return std::string("its data input is a constant");
    const TensorType& type = layer->weights_data->type;
    if (type.dtype != ir::DType::kF32)
      return fmt::format("its weights are {}", ToString(type.dtype));
    if (type.NumElements() == 0) return std::string("its weights are empty");
    const std::vector<int64_t>& w = type.shape;
    if (layer->op == "Conv") {
      if (w.size() < 3) return fmt::format("its weights have rank {}", w.size());
      layer->by_rows = true;
      layer->columns = w[0];
      layer->terms = type.NumElements() / w[0];
      layer->window = layer->terms / w[1];
      layer->channels = w[1] * IntOf(node, "group", 1);
      if (layer->channels <= 0 || layer->columns * w[1] % layer->channels != 0)
        return std::string("its groups do not divide its channels");
    } else {
      if (w.size() != 2) return fmt::format("its weights have rank {}", w.size());
      if (layer->op == "Gemm") {
        layer->by_rows = IntOf(node, "transB", 0) != 0;
        if (IntOf(node, "transA", 0) != 0) return std::string("its data are transposed");
        if (!IsOne(node, "alpha") || !IsOne(node, "beta"))
          return std::string("its alpha or beta is not 1");
      }
      layer->columns = layer->by_rows ? w[0] : w[1];
      layer->terms = layer->channels = layer->by_rows ? w[1] : w[0];
    }
    return CheckFinite(*layer);
  }

  static absl::StatusOr<std::string> CheckFinite(const Layer& layer) {
    const auto* values = reinterpret_cast<const float*>(layer.weights_data->bytes.data());
    const int64_t count = layer.weights_data->type.NumElements();
    for (int64_t i = 0; i < count; ++i) {
      if (std::isfinite(values[i])) continue;
      return Invalid(
          fmt::format("{} {}: element {} of its weights '{}' is {}; a model with weights "
                      "that are not finite can be neither quantised nor pruned",
                      layer.op, layer.name, i, layer.weights, values[i]));
    }
    return std::string();
  }

  void FindBias(const onnx::NodeProto& node, Layer* layer) {
    if (layer->op != "MatMul") {
      if (node.input_size() > 2) TakeBias(node.input(2), layer->node, 2, layer);
      return;
    }
    const auto readers = readers_.find(node.output(0));
    if (readers == readers_.end() || readers->second.size() != 1 ||
        outputs_.contains(node.output(0)))
      return;
    const onnx::NodeProto& add = graph_.node(readers->second[0]);
    if (add.op_type() != "Add" || add.input_size() != 2) return;
    const int other = add.input(0) == node.output(0) ? 1 : 0;
    TakeBias(add.input(other), readers->second[0], other, layer);
  }

  void TakeBias(const std::string& name, int node, int input, Layer* layer) {
    const auto data = Known(name);
    if (!data.ok() || *data == nullptr || (*data)->type.dtype != ir::DType::kF32) return;
    const std::vector<int64_t>& shape = (*data)->type.shape;
    if (shape.empty() || shape.back() != layer->columns ||
        (*data)->type.NumElements() != layer->columns)
      return;
    layer->bias = name;
    layer->bias_data = *data;
    layer->bias_node = node;
    layer->bias_input = input;
  }

  // Layers of one value share its numbers where they agree on what a channel is.
  void Group(const std::string& value, Layer* layer) {
    std::vector<int64_t> spread = {layer->channels};
    if (layer->op == "Conv") spread.resize(layer->weights_data->type.shape.size() - 1, 1);
    const auto same = std::ranges::find_if(model_.groups, [&](const InputGroup& group) {
      return group.value == value && group.spread == spread;
    });
    layer->group = static_cast<size_t>(same - model_.groups.begin());
    if (same == model_.groups.end()) model_.groups.push_back({value, {}, layer->channels, spread});
    model_.groups[layer->group].layers.push_back(model_.layers.size());
  }

  /// The node that alone reads the value, or -1.
  int OnlyReader(const std::string& value) const {
    const auto readers = readers_.find(value);
    const bool one = readers != readers_.end() && readers->second.size() == 1;
    return one && !outputs_.contains(value) ? readers->second[0] : -1;
  }

  /// The value that a layer's columns are at last, biased and through what numbers above zero pass.
  std::string EndOf(const Layer& layer) const {
    constexpr std::array kPassed = {"Relu", "LeakyRelu", "MaxPool", "AveragePool",
                                    "GlobalAveragePool"};
    const onnx::NodeProto& node = graph_.node(layer.node);
    if (node.input_size() > 2 && !node.input(2).empty() && layer.bias_node != layer.node) return "";
    std::string value = node.output(0);
    if (layer.bias_node >= 0 && layer.bias_node != layer.node)
      value = graph_.node(layer.bias_node).output(0);
    for (int reader = OnlyReader(value); reader >= 0; reader = OnlyReader(value)) {
      const onnx::NodeProto& next = graph_.node(reader);
      if (std::ranges::find(kPassed, next.op_type()) == kPassed.end() || next.output_size() != 1)
        break;
      value = next.output(0);
    }
    return value;
  }

  bool IsInitialiser(const std::string& name) const {
    return std::ranges::any_of(graph_.initializer(), [&](const onnx::TensorProto& tensor) {
      return tensor.name() == name && tensor.data_type() == onnx::TensorProto::FLOAT;
    });
  }

  void FindProducer(InputGroup& group) {
    const auto readers = readers_.find(group.value);
    if (outputs_.contains(group.value) || readers == readers_.end() ||
        readers->second.size() != group.layers.size())
      return;
    for (int i = 0; i < graph_.node_size(); ++i) {
      const onnx::NodeProto& node = graph_.node(i);
      if (node.op_type() != "LayerNormalization" || node.output(0) != group.value) continue;
      const bool known =
          IsInitialiser(node.input(1)) && (node.input_size() < 3 || IsInitialiser(node.input(2)));
      if (known && IntOf(node, "axis", -1) == -1) group.norm_node = i;
    }
    for (size_t i = 0; i < model_.layers.size(); ++i) {
      const Layer& layer = model_.layers[i];
      // Channels must be channels on both sides: the last axis of matrices, the second of images.
      const bool images = group.spread.size() > 1;
      if (layer.columns == group.channels && images == (layer.op == "Conv") &&
          EndOf(layer) == group.value)
        group.producer = static_cast<int>(i);
    }
  }

  SourceModel& model_;
  const onnx::GraphProto& graph_;
  onnx_import::TensorReader reader_;
  std::map<std::string, const onnx::TensorProto*> known_;
  std::map<std::string, std::vector<int>> readers_;
  std::set<std::string> outputs_;
};

}  // namespace

absl::StatusOr<SourceModel> ReadSourceModel(const std::string& path, SourceUse use) {
  SourceModel model;
  HONE_ASSIGN_OR_RETURN(const std::shared_ptr<onnx::ModelProto> proto, Parse(path, use));
  model.proto = proto;
  model.folder = std::filesystem::path(path).parent_path().string();
  std::error_code error;
  model.linked_folder = std::filesystem::canonical(path, error).parent_path().string();
  LayerFinder finder(model, proto, model.folder, model.linked_folder);
  HONE_RETURN_IF_ERROR(finder.Run());
  if (!model.layers.empty()) return model;
  const bool narrow = std::ranges::any_of(proto->graph().node(), [](const onnx::NodeProto& node) {
    return node.op_type() == "DequantizeLinear" || node.op_type() == "MatMulInteger";
  });
  return Invalid(fmt::format(
      "'{}': {}", path,
      narrow
          ? std::string("the model is quantised already; name the one in f32 that it was made of")
          : fmt::format("no MatMul, Gemm or Conv of the main graph has known weights of f32: "
                        "there is nothing to {}",
                        use == SourceUse::kQuantise ? "quantise" : "prune")));
}

}  // namespace hone::graph::onnx_quantise
