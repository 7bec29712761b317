#include "fmt/format.h"

#include "graph/onnx_export/zoo_builders.h"
#include "graph/onnx_export/zoo_layers.h"

namespace hone::graph {
namespace {

// ---- MobileNetV2 ----

/// Clip to [0, 6] with shared limits.
std::string Relu6(OnnxWriter& writer, const std::string& name, const std::string& x) {
  return writer.Node("Clip", name, {x, "zero", "six"});
}

std::string ConvNormRelu6(OnnxWriter& writer, const std::string& name, const std::string& x,
                          const ConvolutionSpec& spec) {
  const std::string conv = Convolution(writer, name + ".conv", x, spec);
  return Relu6(writer, name + ".relu6", BatchNorm(writer, name + ".norm", conv, spec.out));
}

struct InvertedResidual {
  int64_t in, out, stride, expand;
};

std::string Build(OnnxWriter& writer, const std::string& name, const std::string& in,
                  const InvertedResidual& block) {
  const int64_t hidden = block.in * block.expand;
  std::string x = in;
  if (block.expand != 1) {
    x = ConvNormRelu6(writer, name + ".expand", x, {.in = block.in, .out = hidden});
  }
  x = ConvNormRelu6(writer, name + ".depthwise", x,
                    {.in = hidden,
                     .out = hidden,
                     .kernel = 3,
                     .stride = block.stride,
                     .pad = 1,
                     .groups = hidden});
  x = Convolution(writer, name + ".project", x, {.in = hidden, .out = block.out});
  x = BatchNorm(writer, name + ".project.norm", x, block.out);
  if (block.stride != 1 || block.in != block.out) return x;
  return writer.Node("Add", name + ".add", {in, x});
}

// ---- SqueezeNet ----

std::string Fire(OnnxWriter& writer, const std::string& name, const std::string& in,
                 int64_t channels, int64_t squeeze, int64_t expand) {
  const auto conv = [&](const std::string& part, const std::string& x, ConvolutionSpec spec) {
    spec.bias = true;
    const std::string full = name + part;
    return Relu(writer, full + ".relu", Convolution(writer, full, x, spec));
  };
  const std::string s = conv(".squeeze", in, {.in = channels, .out = squeeze});
  const std::string one = conv(".expand1x1", s, {.in = squeeze, .out = expand});
  const std::string three =
      conv(".expand3x3", s, {.in = squeeze, .out = expand, .kernel = 3, .pad = 1});
  return writer.Node("Concat", name, {one, three}, {{"axis", int64_t{1}}});
}

std::string CeilPool(OnnxWriter& writer, const std::string& name, const std::string& x) {
  return writer.Node(
      "MaxPool", name, {x},
      {{"kernel_shape", Ints{3, 3}}, {"strides", Ints{2, 2}}, {"ceil_mode", int64_t{1}}});
}

}  // namespace

void BuildMobilenetV2(OnnxWriter& writer) {
  struct Group {
    int64_t expand, channels, repeats, stride;
  };
  constexpr Group kGroups[] = {{1, 16, 1, 1}, {6, 24, 2, 2},  {6, 32, 3, 2}, {6, 64, 4, 2},
                               {6, 96, 3, 1}, {6, 160, 3, 2}, {6, 320, 1, 1}};
  std::string x = writer.Input("input", ir::DType::kF32, {1, 3, 224, 224});
  writer.Floats("zero", {}, {0.0F});
  writer.Floats("six", {}, {6.0F});
  x = ConvNormRelu6(writer, "stem", x, {.in = 3, .out = 32, .kernel = 3, .stride = 2, .pad = 1});
  int64_t channels = 32;
  int number = 0;
  for (const Group& group : kGroups) {
    for (int64_t i = 0; i < group.repeats; ++i) {
      x = Build(writer, fmt::format("block{}", number++), x,
                {channels, group.channels, i == 0 ? group.stride : 1, group.expand});
      channels = group.channels;
    }
  }
  x = ConvNormRelu6(writer, "head", x, {.in = channels, .out = 1280});
  x = writer.Node("GlobalAveragePool", "pool", {x});
  x = writer.Node("Flatten", "flatten", {x}, {{"axis", int64_t{1}}});
  Linear(writer, "output", x, 1280, 1000);
  writer.Output("output", ir::DType::kF32, {1, 1000});
}

void BuildSqueezenet(OnnxWriter& writer) {
  std::string x = writer.Input("input", ir::DType::kF32, {1, 3, 224, 224});
  x = Convolution(writer, "stem", x, {.in = 3, .out = 64, .kernel = 3, .stride = 2, .bias = true});
  x = CeilPool(writer, "pool1", Relu(writer, "stem.relu", x));
  x = Fire(writer, "fire2", x, 64, 16, 64);
  x = Fire(writer, "fire3", x, 128, 16, 64);
  x = CeilPool(writer, "pool3", x);
  x = Fire(writer, "fire4", x, 128, 32, 128);
  x = Fire(writer, "fire5", x, 256, 32, 128);
  x = CeilPool(writer, "pool5", x);
  x = Fire(writer, "fire6", x, 256, 48, 192);
  x = Fire(writer, "fire7", x, 384, 48, 192);
  x = Fire(writer, "fire8", x, 384, 64, 256);
  x = Fire(writer, "fire9", x, 512, 64, 256);
  x = Convolution(writer, "classifier", x, {.in = 512, .out = 1000, .bias = true});
  x = writer.Node("GlobalAveragePool", "pool", {Relu(writer, "classifier.relu", x)});
  x = writer.Node("Flatten", "output", {x}, {{"axis", int64_t{1}}});
  writer.Output(x, ir::DType::kF32, {1, 1000});
}

}  // namespace hone::graph
