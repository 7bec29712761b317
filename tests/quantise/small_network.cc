#include "tests/quantise/small_network.h"

#include "gtest/gtest.h"

#include "base/core/random.h"
#include "base/file.h"

namespace hone::client::testing {
std::vector<double> Drawn(size_t count, uint64_t seed, double size) {
  Random random(seed);
  std::vector<double> values;
  for (size_t i = 0; i < count; ++i) values.push_back(size * (2 * random.Uniform() - 1));
  return values;
}

void AddWeights(graph::OnnxModel& model, const std::string& name, const std::vector<int64_t>& shape,
                uint64_t seed) {
  model.Zeros(name, shape);
  onnx::TensorProto& tensor =
      *model.graph().mutable_initializer(model.graph().initializer_size() - 1);
  int64_t count = 1;
  for (const int64_t extent : shape) count *= extent;
  tensor.clear_raw_data();
  tensor.clear_float_data();
  for (const double value : Drawn(static_cast<size_t>(count), seed, 0.5))
    tensor.add_float_data(static_cast<float>(value));
}

void WriteSmallNetwork(const std::string& path) {
  graph::OnnxModel model(17);
  model.Input("x", {"2", "8", "6", "6"});
  AddWeights(model, "w1", {16, 8, 3, 3}, 1);
  AddWeights(model, "b1", {16}, 2);
  AddWeights(model, "w2", {16, 32}, 3);
  AddWeights(model, "b2", {32}, 4);
  AddWeights(model, "w3", {10, 32}, 5);
  AddWeights(model, "b3", {10}, 6);
  auto& conv = model.Node("Conv", {"x", "w1", "b1"}, {"c"});
  conv.set_name("first");
  graph::SetInts(conv, "pads", {1, 1, 1, 1});
  model.Node("Relu", {"c"}, {"r"});
  model.Node("GlobalAveragePool", {"r"}, {"g"});
  model.Node("Flatten", {"g"}, {"f"});
  model.Node("MatMul", {"f", "w2"}, {"m"}).set_name("second");
  model.Node("Add", {"m", "b2"}, {"a"});
  auto& gemm = model.Node("Gemm", {"a", "w3", "b3"}, {"y"});
  gemm.set_name("third");
  graph::SetInt(gemm, "transB", 1);
  model.Output("y");
  auto& shape =
      *model.graph().mutable_output(0)->mutable_type()->mutable_tensor_type()->mutable_shape();
  for (const int64_t extent : {2, 10}) shape.add_dim()->set_dim_value(extent);
  ASSERT_TRUE(WriteFileAtomically(path, model.Bytes()).ok());
}

void SaveTensors(const std::string& path, const NamedTensors& tensors) {
  ASSERT_TRUE(WriteNpz(path, tensors).ok());
}

}  // namespace hone::client::testing
