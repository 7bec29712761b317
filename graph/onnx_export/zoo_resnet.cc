#include "fmt/format.h"

#include "graph/onnx_export/zoo_builders.h"
#include "graph/onnx_export/zoo_layers.h"

namespace hone::graph {
namespace {

/// How a residual block ends: a small last scale keeps the sum from growing with depth.
constexpr NormScale kLastScale = {0.1, 0.3};

struct Map {
  std::string value;
  int64_t channels = 0;
};

std::string Shortcut(OnnxWriter& writer, const std::string& name, const Map& in, int64_t channels,
                     int64_t stride) {
  if (stride == 1 && in.channels == channels) return in.value;
  const std::string conv =
      Convolution(writer, name + ".conv", in.value,
                  {.in = in.channels, .out = channels, .kernel = 1, .stride = stride, .gain = 1.0});
  return BatchNorm(writer, name + ".norm", conv, channels);
}

Map BasicBlock(OnnxWriter& writer, const std::string& name, const Map& in, int64_t width,
               int64_t stride) {
  std::string x =
      Convolution(writer, name + ".conv1", in.value,
                  {.in = in.channels, .out = width, .kernel = 3, .stride = stride, .pad = 1});
  x = Relu(writer, name + ".relu1", BatchNorm(writer, name + ".norm1", x, width));
  x = Convolution(writer, name + ".conv2", x, {.in = width, .out = width, .kernel = 3, .pad = 1});
  x = BatchNorm(writer, name + ".norm2", x, width, kLastScale);
  const std::string shortcut = Shortcut(writer, name + ".shortcut", in, width, stride);
  x = writer.Node("Add", name + ".add", {x, shortcut});
  return {Relu(writer, name + ".relu2", x), width};
}

Map Bottleneck(OnnxWriter& writer, const std::string& name, const Map& in, int64_t width,
               int64_t stride) {
  const int64_t out = 4 * width;
  std::string x = Convolution(writer, name + ".conv1", in.value,
                              {.in = in.channels, .out = width, .kernel = 1});
  x = Relu(writer, name + ".relu1", BatchNorm(writer, name + ".norm1", x, width));
  x = Convolution(writer, name + ".conv2", x,
                  {.in = width, .out = width, .kernel = 3, .stride = stride, .pad = 1});
  x = Relu(writer, name + ".relu2", BatchNorm(writer, name + ".norm2", x, width));
  x = Convolution(writer, name + ".conv3", x, {.in = width, .out = out, .kernel = 1});
  x = BatchNorm(writer, name + ".norm3", x, out, kLastScale);
  const std::string shortcut = Shortcut(writer, name + ".shortcut", in, out, stride);
  x = writer.Node("Add", name + ".add", {x, shortcut});
  return {Relu(writer, name + ".relu3", x), out};
}

using Block = Map (*)(OnnxWriter&, const std::string&, const Map&, int64_t, int64_t);

void BuildResnet(OnnxWriter& writer, Block block, const Ints& depths) {
  Map x = {writer.Input("input", ir::DType::kF32, {1, 3, 224, 224}), 3};
  x.value = Convolution(writer, "stem.conv", x.value,
                        {.in = 3, .out = 64, .kernel = 7, .stride = 2, .pad = 3});
  x.value = Relu(writer, "stem.relu", BatchNorm(writer, "stem.norm", x.value, 64));
  x.value = writer.Node(
      "MaxPool", "stem.pool", {x.value},
      {{"kernel_shape", Ints{3, 3}}, {"strides", Ints{2, 2}}, {"pads", Ints{1, 1, 1, 1}}});
  x.channels = 64;
  for (size_t stage = 0; stage < depths.size(); ++stage) {
    for (int64_t i = 0; i < depths[stage]; ++i) {
      const int64_t stride = stage > 0 && i == 0 ? 2 : 1;
      x = block(writer, fmt::format("stage{}.{}", stage + 1, i), x, int64_t{64} << stage, stride);
    }
  }
  const std::string pooled = writer.Node("GlobalAveragePool", "pool", {x.value});
  const std::string flat = writer.Node("Flatten", "flatten", {pooled}, {{"axis", int64_t{1}}});
  Linear(writer, "output", flat, x.channels, 1000);
  writer.Output("output", ir::DType::kF32, {1, 1000});
}

}  // namespace

void BuildResnet18(OnnxWriter& writer) { BuildResnet(writer, BasicBlock, {2, 2, 2, 2}); }

void BuildResnet50(OnnxWriter& writer) { BuildResnet(writer, Bottleneck, {3, 4, 6, 3}); }

}  // namespace hone::graph
