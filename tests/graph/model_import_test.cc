#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <string>

#include "gtest/gtest.h"

#include "base/file.h"
#include "graph/onnx_import/import.h"
#include "graph/onnx_import/onnx.pb.h"
#include "tests/test_paths.h"

// Every skeleton of tests/models, its emptied weights filled with zeros: the import needs shapes
// only.
namespace hone::graph {
namespace {

std::string FilledModel(const std::string& name) {
  const auto bytes = ReadFile(testing::SourceDir() + "/tests/models/skeletons/" + name + ".onnx");
  if (!bytes.ok()) return "";
  onnx::ModelProto model;
  model.ParseFromString(*bytes);
  for (onnx::TensorProto& tensor : *model.mutable_graph()->mutable_initializer()) {
    if (tensor.doc_string() != "emptied") continue;
    size_t count = sizeof(float);
    for (int64_t extent : tensor.dims()) count *= static_cast<size_t>(extent);
    tensor.set_raw_data(std::string(count, '\0'));
  }
  return model.SerializeAsString();
}

std::string TypesOf(const Graph& graph, const std::vector<ValueId>& ids) {
  std::string text;
  for (ValueId id : ids) {
    const Value& value = graph.values[static_cast<size_t>(id)];
    if (!text.empty()) text += " ";
    text += value.name + ":" + ToText(value.type);
  }
  return text;
}

struct Model {
  const char* name;
  const char* inputs;
  const char* outputs;
};

class ModelImportTest : public ::testing::TestWithParam<Model> {};

TEST_P(ModelImportTest, GivesTheTypesOfTheRun) {
  const Model& model = GetParam();
  const std::string bytes = FilledModel(model.name);
  ASSERT_FALSE(bytes.empty());
  const auto graph = ImportOnnx(std::as_bytes(std::span(bytes)));
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_EQ(TypesOf(*graph, graph->inputs), model.inputs);
  EXPECT_EQ(TypesOf(*graph, graph->outputs), model.outputs);
}

// From runs of ONNX Runtime.
constexpr Model kModels[] = {
    {"bert_base", "input0:i64[1,128] input1:i64[1,128]", "layer_norm_24:f32[1,128,768]"},
    {"bert_small", "input0:i64[1,128] input1:i64[1,128]", "571:f32[1,128,256]"},
    {"convnext_tiny", "input:f32[1,3,224,224]", "linear_36:f32[1,1000]"},
    {"densenet121", "input:f32[1,3,224,224]", "linear:f32[1,1000]"},
    {"efficientnet_b0", "input:f32[1,3,224,224]", "776:f32[1,1000]"},
    {"gpt2_decode",
     "input0:i64[1,1] input1:i64[1,1] input2:f32[1,12,127,64] input3:f32[1,12,127,64]"
     " input4:f32[1,12,127,64] input5:f32[1,12,127,64] input6:f32[1,12,127,64]"
     " input7:f32[1,12,127,64] input8:f32[1,12,127,64] input9:f32[1,12,127,64]"
     " input10:f32[1,12,127,64] input11:f32[1,12,127,64] input12:f32[1,12,127,64]"
     " input13:f32[1,12,127,64]",
     "linear:f32[1,1,50257] cat_12:f32[1,12,128,64] cat_13:f32[1,12,128,64]"
     " cat_14:f32[1,12,128,64] cat_15:f32[1,12,128,64] cat_16:f32[1,12,128,64]"
     " cat_17:f32[1,12,128,64] cat_18:f32[1,12,128,64] cat_19:f32[1,12,128,64]"
     " cat_20:f32[1,12,128,64] cat_21:f32[1,12,128,64] cat_22:f32[1,12,128,64]"
     " cat_23:f32[1,12,128,64]"},
    {"gpt2_prefill", "input:i64[1,128]", "linear:f32[1,128,50257]"},
    {"lenet5", "input:f32[1,1,28,28]", "23:f32[1,10]"},
    {"lstm_lm", "input:i64[1,64]", "207:f32[1,64,5000]"},
    {"mlp", "input:f32[1,784]", "11:f32[1,10]"},
    {"mobilenet_v2", "input:f32[1,3,224,224]", "536:f32[1,1000]"},
    {"mobilenet_v3_small", "input:f32[1,3,224,224]", "linear_1:f32[1,1000]"},
    {"resnet18", "input:f32[1,3,224,224]", "191:f32[1,1000]"},
    {"resnet50", "input:f32[1,3,224,224]", "linear:f32[1,1000]"},
    {"segformer_b0", "input:f32[1,3,256,256]", "conv2d_19:f32[1,150,64,64]"},
    {"squeezenet", "input:f32[1,3,224,224]", "117:f32[1,1000]"},
    {"unet", "input:f32[1,3,256,256]", "conv2d_18:f32[1,2,256,256]"},
    {"vgg16", "input:f32[1,3,224,224]", "70:f32[1,1000]"},
    {"vit_small", "input:f32[1,3,224,224]", "linear_72:f32[1,1000]"},
};

INSTANTIATE_TEST_SUITE_P(All, ModelImportTest, ::testing::ValuesIn(kModels),
                         [](const auto& model) { return std::string(model.param.name); });

}  // namespace
}  // namespace hone::graph
