#include "graph/onnx_export/zoo_layers.h"

namespace hone::graph {

std::string Convolution(OnnxWriter& writer, const std::string& name, const std::string& x,
                        const ConvolutionSpec& spec) {
  const int64_t in = spec.in / spec.groups;
  std::vector<std::string> inputs = {
      x, writer.Weight(name + ".weight", {spec.out, in, spec.kernel, spec.kernel},
                       in * spec.kernel * spec.kernel, spec.gain)};
  if (spec.bias) inputs.push_back(writer.Weight(name + ".bias", {spec.out}, -0.1, 0.1));
  return writer.Node("Conv", name, std::move(inputs),
                     {{"kernel_shape", Ints{spec.kernel, spec.kernel}},
                      {"strides", Ints{spec.stride, spec.stride}},
                      {"pads", Ints(4, spec.pad)},
                      {"dilations", Ints{1, 1}},
                      {"group", spec.groups}});
}

std::string BatchNorm(OnnxWriter& writer, const std::string& name, const std::string& x,
                      int64_t channels, NormScale scale) {
  return writer.Node("BatchNormalization", name,
                     {x, writer.Weight(name + ".scale", {channels}, scale.low, scale.high),
                      writer.Weight(name + ".bias", {channels}, -0.2, 0.2),
                      writer.Weight(name + ".mean", {channels}, -0.2, 0.2),
                      writer.Weight(name + ".variance", {channels}, 0.6, 1.4)},
                     {{"epsilon", 1e-5}});
}

std::string Relu(OnnxWriter& writer, const std::string& name, const std::string& x) {
  return writer.Node("Relu", name, {x});
}

std::string Linear(OnnxWriter& writer, const std::string& name, const std::string& x, int64_t in,
                   int64_t out, double gain) {
  return writer.Node("Gemm", name,
                     {x, writer.Weight(name + ".weight", {out, in}, in, gain),
                      writer.Weight(name + ".bias", {out}, -0.1, 0.1)},
                     {{"transB", int64_t{1}}});
}

std::string Projection(OnnxWriter& writer, const std::string& name, const std::string& x,
                       int64_t in, int64_t out, double gain) {
  const std::string product = writer.Node(
      "MatMul", name + ".product", {x, writer.Weight(name + ".weight", {in, out}, in, gain)});
  return writer.Node("Add", name, {writer.Weight(name + ".bias", {out}, -0.1, 0.1), product});
}

std::string LayerNorm(OnnxWriter& writer, const std::string& name, const std::string& x,
                      int64_t width, double epsilon) {
  return writer.Node("LayerNormalization", name,
                     {x, writer.Weight(name + ".scale", {width}, 0.6, 1.4),
                      writer.Weight(name + ".bias", {width}, -0.2, 0.2)},
                     {{"axis", int64_t{-1}}, {"epsilon", epsilon}});
}

}  // namespace hone::graph
