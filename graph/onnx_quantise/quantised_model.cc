#include "graph/onnx_quantise/quantised_model.h"

#include <cmath>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "fmt/format.h"

#include "base/status.h"
#include "graph/onnx_import/tensor_reader.h"
#include "graph/onnx_quantise/graph_editor.h"
#include "graph/onnx_quantise/standalone_model.h"

namespace hone::graph::onnx_quantise {
namespace {

using onnx::TensorProto;
using Shape = std::vector<int64_t>;

class ModelWriter {
 public:
  ModelWriter(const SourceModel& source, const Assignment& assignment)
      : source_(source), assignment_(assignment), editor_(*source.proto) {
    for (size_t i = 0; i < source.layers.size(); ++i) {
      const Layer& layer = source.layers[i];
      if (assignment.layers[i].kept()) continue;
      of_node_[layer.node] = i;
      if (ChangesBias(i)) bias_of_node_[layer.bias_node].push_back(i);
    }
    for (size_t g = 0; g < source.groups.size(); ++g)
      if (IsFolded(g) && !FoldsIntoLayer(g)) norms_[source.groups[g].norm_node] = g;
  }

  absl::StatusOr<std::string> Run() {
    const onnx::GraphProto& graph = source_.proto->graph();
    for (int i = 0; i < graph.node_size(); ++i) {
      const auto layer = of_node_.find(i);
      if (layer != of_node_.end()) {
        Write(graph.node(i), layer->second);
        continue;
      }
      onnx::NodeProto own = graph.node(i);
      if (const auto norm = norms_.find(i); norm != norms_.end()) DivideNorm(norm->second, &own);
      if (const auto bias = bias_of_node_.find(i); bias != bias_of_node_.end()) {
        for (const size_t k : bias->second) own.set_input(source_.layers[k].bias_input, Bias(k));
      }
      editor_.Keep(own);
    }
    return StandaloneModel(source_, editor_.Finish());
  }

 private:
  const Layer& LayerAt(size_t i) const { return source_.layers[i]; }
  const LayerChoice& ChoiceAt(size_t i) const { return assignment_.layers[i]; }

  // ---- what divides a group's channels without a node of its own ----

  bool FoldsIntoLayer(size_t g) const {
    const int producer = source_.groups[g].producer;
    return producer >= 0 && !ChoiceAt(static_cast<size_t>(producer)).kept();
  }
  /// Where the group has narrowed layers alone: what stays in f32 reads the value undivided.
  bool IsFolded(size_t g) const {
    const InputGroup& group = source_.groups[g];
    if (assignment_.groups[g].smooth.empty()) return false;
    for (const size_t i : group.layers)
      if (ChoiceAt(i).kept()) return false;
    return FoldsIntoLayer(g) || group.norm_node >= 0;
  }
  /// What the columns of a layer are divided by; empty: ones.
  std::vector<float> Divisors(size_t layer) const {
    for (size_t g = 0; g < source_.groups.size(); ++g) {
      if (source_.groups[g].producer == static_cast<int>(layer) && IsFolded(g) && FoldsIntoLayer(g))
        return assignment_.groups[g].smooth;
    }
    return {};
  }
  bool ChangesBias(size_t i) const {
    return LayerAt(i).bias_node >= 0 && (!ChoiceAt(i).bias.empty() || !Divisors(i).empty());
  }

  std::vector<float> BiasValues(size_t i) const {
    std::vector<float> values = ChoiceAt(i).bias;
    if (values.empty()) {
      for (const double value : LayerAt(i).bias_data->AsDoubles())
        values.push_back(static_cast<float>(value));
    }
    const std::vector<float> divisors = Divisors(i);
    for (size_t n = 0; n < divisors.size(); ++n) values[n] /= divisors[n];
    return values;
  }

  /// NarrowWeights::scales as they are written.
  std::vector<float> Scales(size_t i) const {
    std::vector<float> scales = ChoiceAt(i).narrow.scales;
    const std::vector<float> divisors = Divisors(i);
    for (size_t n = 0; n < divisors.size(); ++n) scales[n] /= divisors[n];
    return scales;
  }

  void DivideNorm(size_t g, onnx::NodeProto* own) {
    onnx_import::TensorReader reader(source_.proto, source_.folder, source_.linked_folder);
    for (int k = 1; k < own->input_size(); ++k) {
      if (own->input(k).empty()) continue;
      std::vector<float> values = KnownValues(own->input(k), reader);
      const std::vector<float>& smooth = assignment_.groups[g].smooth;
      for (size_t c = 0; c < values.size(); ++c) values[c] /= smooth[c];
      own->set_input(
          k, editor_.AddFloats(own->input(k), {static_cast<int64_t>(values.size())}, values));
    }
  }

  std::vector<float> KnownValues(const std::string& name, onnx_import::TensorReader& reader) const {
    std::vector<float> values;
    for (const onnx::TensorProto& tensor : source_.proto->graph().initializer()) {
      if (tensor.name() != name) continue;
      const auto data = reader.Read(tensor);
      if (!data.ok()) continue;
      for (const double value : (*data)->AsDoubles()) values.push_back(static_cast<float>(value));
    }
    return values;
  }

  void Write(const onnx::NodeProto& node, size_t i) {
    switch (assignment_.scheme) {
      case Scheme::kInt8: return WriteReading(node, i, RestoredData(i), RestoredBytes(i));
      case Scheme::kInt8Weights:
      case Scheme::kF16: return WriteReading(node, i, SmoothData(i), RestoredAny(i));
      case Scheme::kBf16: return WriteReading(node, i, RoundedToBf16(i), RestoredHalves(i));
      case Scheme::kInt8Dynamic: return WriteIntegerProduct(node, i);
      case Scheme::kInt4Weights: return WriteNBits(node, i);
    }
  }

  /// The node itself with other operands.
  void WriteReading(const onnx::NodeProto& node, size_t i, const std::string& data,
                    const std::string& weights) {
    onnx::NodeProto own = node;
    own.set_input(0, data);
    own.set_input(1, weights);
    if (own.input_size() > 2 && !own.input(2).empty() && LayerAt(i).bias_node == LayerAt(i).node)
      own.set_input(2, OwnBias(i, own.input(2)));
    editor_.Keep(own);
  }

  /// A vector that differs from the source's, or its name there.
  std::string Bias(size_t i) {
    const Layer& layer = LayerAt(i);
    if (!ChangesBias(i)) return layer.bias;
    return editor_.AddFloats(layer.bias, layer.bias_data->type.shape, BiasValues(i));
  }

  /// The bias of an integer product is i32 in steps of both scales, which is what engines with
  /// integer kernels look for; where that leaves 32 bits it stays in f32.
  std::string OwnBias(size_t i, const std::string& name) {
    const Layer& layer = LayerAt(i);
    if (assignment_.scheme != Scheme::kInt8 || layer.bias_data->type.shape.size() != 1)
      return Bias(i);
    const std::vector<float> values = BiasValues(i), of_weights = Scales(i);
    std::vector<int32_t> numbers;
    std::vector<float> scales;
    for (size_t n = 0; n < values.size(); ++n) {
      const float scale = assignment_.groups[layer.group].grid.scale * of_weights[n];
      const double number =
          std::nearbyint(static_cast<double>(values[n]) / static_cast<double>(scale));
      if (!(std::fabs(number) < 1e9) || !(scale > 0)) return Bias(i);
      numbers.push_back(static_cast<int32_t>(number));
      scales.push_back(scale);
    }
    const Shape shape = {static_cast<int64_t>(values.size())};
    const std::string quantised =
        editor_.AddTensor<int32_t>(name + "_quantized", TensorProto::INT32, shape, numbers);
    const std::string scale = editor_.AddFloats(name + "_scale", shape, scales);
    onnx::NodeProto& restored =
        editor_.AddNode("DequantizeLinear", {quantised, scale}, name + "_dequantized");
    SetInt(restored, "axis", 0);
    return restored.output(0);
  }

  // ---- what is read ----

  std::string SmoothData(size_t i) {
    const size_t g = LayerAt(i).group;
    const InputGroup& group = source_.groups[g];
    const std::vector<float>& smooth = assignment_.groups[g].smooth;
    if (smooth.empty() || IsFolded(g)) return group.value;
    if (const auto it = smooth_.find(g); it != smooth_.end()) return it->second;
    std::vector<float> inverse;
    for (const float s : smooth) inverse.push_back(1 / s);
    const std::string factors =
        editor_.AddFloats(group.value + "_smooth_factors", group.spread, inverse);
    return smooth_[g] =
               editor_.AddNode("Mul", {group.value, factors}, group.value + "_smooth").output(0);
  }

  std::string RestoredData(size_t i) {
    const size_t g = LayerAt(i).group;
    if (const auto it = data_.find(g); it != data_.end()) return it->second;
    const std::string value = SmoothData(i);
    const ByteGrid& grid = assignment_.groups[g].grid;
    const std::string scale = editor_.AddFloats(value + "_scale", {}, std::span(&grid.scale, 1));
    const std::string zero = editor_.AddTensor<uint8_t>(value + "_zero_point", TensorProto::UINT8,
                                                        {}, std::span(&grid.zero, 1));
    const std::string bytes =
        editor_.AddNode("QuantizeLinear", {value, scale, zero}, value + "_quantized").output(0);
    return data_[g] =
               editor_.AddNode("DequantizeLinear", {bytes, scale, zero}, value + "_dequantized")
                   .output(0);
  }

  std::string RoundedToBf16(size_t i) {
    const size_t g = LayerAt(i).group;
    if (const auto it = data_.find(g); it != data_.end()) return it->second;
    const std::string value = SmoothData(i);
    onnx::NodeProto& narrow = editor_.AddNode("Cast", {value}, value + "_bf16");
    SetInt(narrow, "to", TensorProto::BFLOAT16);
    const std::string halves = narrow.output(0);
    onnx::NodeProto& wide = editor_.AddNode("Cast", {halves}, value + "_rounded");
    SetInt(wide, "to", TensorProto::FLOAT);
    return data_[g] = wide.output(0);
  }

  // ---- weights ----

  std::string Bytes(size_t i) {
    const Layer& layer = LayerAt(i);
    return editor_.AddTensor<int8_t>(layer.weights + "_quantized", TensorProto::INT8,
                                     layer.weights_data->type.shape, ChoiceAt(i).narrow.bytes);
  }

  std::string RestoredBytes(size_t i) {
    const Layer& layer = LayerAt(i);
    const std::string bytes = Bytes(i);
    const std::string scales =
        editor_.AddFloats(layer.weights + "_scale", {layer.columns}, Scales(i));
    const std::vector<int8_t> zeros(static_cast<size_t>(layer.columns));
    const std::string zero = editor_.AddTensor<int8_t>(layer.weights + "_zero_point",
                                                       TensorProto::INT8, {layer.columns}, zeros);
    onnx::NodeProto& restored =
        editor_.AddNode("DequantizeLinear", {bytes, scales, zero}, layer.weights + "_dequantized");
    SetInt(restored, "axis", layer.by_rows ? 0 : 1);
    return restored.output(0);
  }

  std::string RestoredHalves(size_t i) {
    const Layer& layer = LayerAt(i);
    const bool bf16 = assignment_.scheme == Scheme::kBf16;
    const std::string halves =
        editor_.AddTensor<uint16_t>(layer.weights + (bf16 ? "_bf16" : "_f16"),
                                    bf16 ? TensorProto::BFLOAT16 : TensorProto::FLOAT16,
                                    layer.weights_data->type.shape, ChoiceAt(i).narrow.halves);
    onnx::NodeProto& wide = editor_.AddNode("Cast", {halves}, layer.weights + "_wide");
    SetInt(wide, "to", TensorProto::FLOAT);
    return wide.output(0);
  }

  std::string RestoredAny(size_t i) {
    return assignment_.scheme == Scheme::kF16 ? RestoredHalves(i) : RestoredBytes(i);
  }

  // ---- products of other operators ----

  /// The last node of what stands for a product makes its output.
  void NameOutput(const onnx::NodeProto& node, const std::string& op,
                  const std::vector<std::string>& inputs) {
    onnx::NodeProto own;
    own.set_op_type(op);
    own.set_name(node.name());
    for (const std::string& input : inputs) own.add_input(input);
    own.add_output(node.output(0));
    editor_.Keep(own);
  }

  /// The product and, of a Gemm, its bias.
  void FinishProduct(const onnx::NodeProto& node, size_t i, const std::string& product) {
    NameOutput(node, "Add",
               {product, LayerAt(i).bias_node == LayerAt(i).node ? Bias(i) : node.input(2)});
  }
  static bool AddsVector(const onnx::NodeProto& node) {
    return node.input_size() > 2 && !node.input(2).empty();
  }

  struct DynamicBytes {
    std::string bytes, scale, zero;
  };
  const DynamicBytes& Dynamic(size_t i) {
    const size_t g = LayerAt(i).group;
    if (const auto it = dynamic_.find(g); it != dynamic_.end()) return it->second;
    const std::string value = SmoothData(i);
    onnx::NodeProto& node = editor_.AddNode("DynamicQuantizeLinear", {value}, value + "_quantized");
    node.add_output(editor_.FreshName(value + "_scale"));
    node.add_output(editor_.FreshName(value + "_zero_point"));
    return dynamic_[g] = {node.output(0), node.output(1), node.output(2)};
  }

  /// The weights' numbers as [terms][columns].
  std::string BytesByTerms(size_t i) {
    const Layer& layer = LayerAt(i);
    if (!layer.by_rows) return Bytes(i);
    const std::vector<int8_t>& rows = ChoiceAt(i).narrow.bytes;
    std::vector<int8_t> terms(rows.size());
    for (int64_t n = 0; n < layer.columns; ++n)
      for (int64_t t = 0; t < layer.terms; ++t)
        terms[static_cast<size_t>(t * layer.columns + n)] = rows[layer.ElementOf(n, t)];
    return editor_.AddTensor<int8_t>(layer.weights + "_quantized", TensorProto::INT8,
                                     {layer.terms, layer.columns}, terms);
  }

  void WriteIntegerProduct(const onnx::NodeProto& node, size_t i) {
    const Layer& layer = LayerAt(i);
    const DynamicBytes data = Dynamic(i);
    const std::string name = node.output(0);
    const std::string sum =
        editor_.AddNode("MatMulInteger", {data.bytes, BytesByTerms(i), data.zero}, name + "_sum")
            .output(0);
    onnx::NodeProto& cast = editor_.AddNode("Cast", {sum}, name + "_wide");
    SetInt(cast, "to", TensorProto::FLOAT);
    const std::string wide = cast.output(0);
    const std::string scales =
        editor_.AddFloats(layer.weights + "_scale", {layer.columns}, Scales(i));
    const std::string both =
        editor_.AddNode("Mul", {data.scale, scales}, name + "_scale").output(0);
    if (!AddsVector(node)) return NameOutput(node, "Mul", {wide, both});
    FinishProduct(node, i, editor_.AddNode("Mul", {wide, both}, name + "_product").output(0));
  }

  // com.microsoft's MatMulNBits: columns by groups by bytes, two numbers in each, the low one
  // first, less 8.
  void WriteNBits(const onnx::NodeProto& node, size_t i) {
    const Layer& layer = LayerAt(i);
    const int64_t size = assignment_.group_size, groups = layer.terms / size;
    std::vector<uint8_t> packed(static_cast<size_t>(layer.columns * layer.terms / 2));
    for (int64_t n = 0; n < layer.columns; ++n) {
      for (int64_t t = 0; t < layer.terms; ++t) {
        const auto number =
            static_cast<unsigned>(ChoiceAt(i).narrow.bytes[layer.ElementOf(n, t)] + 8);
        packed[static_cast<size_t>((n * layer.terms + t) / 2)] |=
            static_cast<uint8_t>(t % 2 == 0 ? number : number << 4U);
      }
    }
    const std::string weights =
        editor_.AddTensor<uint8_t>(layer.weights + "_quantized", TensorProto::UINT8,
                                   {layer.columns, groups, size / 2}, packed);
    const std::string scales = editor_.AddFloats(layer.weights + "_scale", {layer.columns * groups},
                                                 ChoiceAt(i).narrow.scales);
    AddMicrosoft();
    onnx::NodeProto product;
    product.set_op_type("MatMulNBits");
    product.set_domain("com.microsoft");
    for (const std::string& input : {SmoothData(i), weights, scales}) product.add_input(input);
    SetInt(product, "K", layer.terms);
    SetInt(product, "N", layer.columns);
    SetInt(product, "bits", 4);
    SetInt(product, "block_size", size);
    const std::string output =
        AddsVector(node) ? editor_.FreshName(node.output(0) + "_product") : node.output(0);
    product.set_name(AddsVector(node) ? output : node.name());
    product.add_output(output);
    editor_.Keep(product);
    if (AddsVector(node)) FinishProduct(node, i, output);
  }

  void AddMicrosoft() {
    for (const onnx::OperatorSetIdProto& set : editor_.model().opset_import())
      if (set.domain() == "com.microsoft") return;
    onnx::OperatorSetIdProto& set = *editor_.model().add_opset_import();
    set.set_domain("com.microsoft");
    set.set_version(1);
  }

  const SourceModel& source_;
  const Assignment& assignment_;
  GraphEditor editor_;
  std::map<int, size_t> of_node_;
  std::map<int, std::vector<size_t>> bias_of_node_;
  std::map<int, size_t> norms_;
  std::map<size_t, std::string> smooth_, data_;
  std::map<size_t, DynamicBytes> dynamic_;
};

}  // namespace

absl::StatusOr<std::string> QuantisedModel(const SourceModel& source,
                                           const Assignment& assignment) {
  return ModelWriter(source, assignment).Run();
}

}  // namespace hone::graph::onnx_quantise
