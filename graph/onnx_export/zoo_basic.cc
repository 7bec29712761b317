#include "fmt/format.h"

#include "graph/onnx_export/zoo_builders.h"
#include "graph/onnx_export/zoo_layers.h"

namespace hone::graph {
namespace {

std::string LstmLayer(OnnxWriter& writer, const std::string& name, const std::string& x,
                      int64_t units) {
  const std::string w = writer.Weight(name + ".w", {1, 4 * units, units}, units);
  const std::string r = writer.Weight(name + ".r", {1, 4 * units, units}, units);
  const std::string b = writer.Weight(name + ".b", {1, 8 * units}, -0.1, 0.1);
  const std::vector<std::string> outputs =
      writer.Nodes("LSTM", {name + ".directions"}, {x, w, r, b}, {{"hidden_size", units}});
  return writer.Node("Squeeze", name, {outputs[0], "direction_axis"});
}

/// Two convolutions with batch norm.
std::string UnetBlock(OnnxWriter& writer, const std::string& name, const std::string& in,
                      int64_t channels, int64_t out) {
  std::string x = in;
  for (int i = 1; i <= 2; ++i) {
    const std::string part = fmt::format("{}.{}", name, i);
    x = Convolution(writer, part + ".conv", x,
                    {.in = i == 1 ? channels : out, .out = out, .kernel = 3, .pad = 1});
    x = Relu(writer, part + ".relu", BatchNorm(writer, part + ".norm", x, out));
  }
  return x;
}

}  // namespace

void BuildLstm(OnnxWriter& writer) {
  constexpr int64_t kTokens = 64, kUnits = 512, kVocabulary = 5000;
  const std::string ids =
      writer.Input("input_ids", ir::DType::kI64, {kTokens, 1}, {.low = 0, .high = kVocabulary});
  writer.Integers("direction_axis", {1}, {1});
  std::string x = writer.Node(
      "Gather", "embed", {writer.Weight("embed.weight", {kVocabulary, kUnits}, -0.5, 0.5), ids});
  x = LstmLayer(writer, "layer0", x, kUnits);
  x = LstmLayer(writer, "layer1", x, kUnits);
  Projection(writer, "logits", x, kUnits, kVocabulary, 2.0);
  writer.Output("logits", ir::DType::kF32, {kTokens, 1, kVocabulary});
}

void BuildMlp(OnnxWriter& writer) {
  std::string x = writer.Input("input", ir::DType::kF32, {1, 784});
  x = Relu(writer, "relu1", Linear(writer, "linear1", x, 784, 256, 1.41));
  x = Relu(writer, "relu2", Linear(writer, "linear2", x, 256, 128, 1.41));
  Linear(writer, "output", x, 128, 10);
  writer.Output("output", ir::DType::kF32, {1, 10});
}

void BuildUnet(OnnxWriter& writer) {
  constexpr int64_t kTop = 32, kDepth = 4;
  std::string x = writer.Input("input", ir::DType::kF32, {1, 3, 256, 256});
  std::vector<std::string> skips;
  int64_t channels = 3;
  for (int64_t level = 0; level < kDepth; ++level) {
    const int64_t width = kTop << level;
    x = UnetBlock(writer, fmt::format("down{}", level), x, channels, width);
    skips.push_back(x);
    x = writer.Node("MaxPool", fmt::format("pool{}", level), {x},
                    {{"kernel_shape", Ints{2, 2}}, {"strides", Ints{2, 2}}});
    channels = width;
  }
  x = UnetBlock(writer, "bottom", x, channels, 2 * channels);
  channels *= 2;
  for (int64_t level = kDepth - 1; level >= 0; --level) {
    const int64_t width = kTop << level;
    const std::string name = fmt::format("up{}", level);
    // Each output pixel has one tap of each input channel.
    const std::string weight = writer.Weight(name + ".weight", {channels, width, 2, 2}, channels);
    const std::string bias = writer.Weight(name + ".bias", {width}, -0.1, 0.1);
    x = writer.Node("ConvTranspose", name, {x, weight, bias},
                    {{"kernel_shape", Ints{2, 2}}, {"strides", Ints{2, 2}}});
    x = writer.Node("Concat", name + ".concat", {x, skips[static_cast<size_t>(level)]},
                    {{"axis", int64_t{1}}});
    x = UnetBlock(writer, name + ".block", x, 2 * width, width);
    channels = width;
  }
  x = Convolution(writer, "mask", x, {.in = kTop, .out = 1, .bias = true, .gain = 1.0});
  writer.Output(writer.Node("Sigmoid", "output", {x}), ir::DType::kF32, {1, 1, 256, 256});
}

}  // namespace hone::graph
