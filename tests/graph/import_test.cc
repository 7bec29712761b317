#include "graph/onnx_import/import.h"

#include <filesystem>
#include <fstream>
#include <functional>
#include <set>

#include "fmt/format.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "base/status.h"
#include "graph/interpreter_evaluator.h"
#include "graph/passes/passes.h"
#include "tests/graph/onnx_model.h"

namespace hone::graph {
namespace {

using onnx::TensorProto;
using ::testing::HasSubstr;

TEST(ImportTest, ConvolutionAndReluBecomeCanonicalNodes) {
  OnnxModel model;
  model.Input("x", {"1", "3", "8", "8"}).Zeros("w", {4, 3, 3, 3}).Output("y");
  SetInts(model.Node("Conv", {"x", "w"}, {"c"}), "pads", {1, 1, 1, 1});
  model.Node("Relu", {"c"}, {"y"});
  const auto graph = model.Import();
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_EQ(ToText(*graph),
            "graph test\n"
            "%1:f32[1,3,8,8] = input x\n"
            "%0:f32[4,3,3,3] = constant\n"
            "%2:f32[1,4,8,8] = Conv(%1, %0) {dilations=[1,1] group=1 layout=nchw pads=[1,1,1,1] "
            "strides=[1,1]}\n"
            "%3:f32[] = constant {0}\n"
            "%4:f32[1,4,8,8] = Binary(%2, %3) {fn=max}\n"
            "output %4 y\n");
}

TEST(ImportTest, ShapeChainsFoldAway) {
  OnnxModel model;
  model.Input("x", {"2", "3", "4"}).Ints("zero", {0}).Ints("rest", {-1}).Output("y");
  model.Node("Shape", {"x"}, {"shape"});
  model.Node("Gather", {"shape", "zero"}, {"batch"});
  SetInt(model.Node("Concat", {"batch", "rest"}, {"target"}), "axis", 0);
  model.Node("Reshape", {"x", "target"}, {"y"});
  const auto graph = model.Import();
  ASSERT_TRUE(graph.ok()) << graph.status();
  ASSERT_EQ(graph->nodes.size(), 1U);
  EXPECT_EQ(graph->values[static_cast<size_t>(graph->outputs[0])].type.shape,
            (std::vector<int64_t>{2, 12}));
}

// The nearest f32 to 1.4 is below it, so that five times it is seven in f32 alone.
TEST(ImportTest, SizesByScalesAreThoseOfFloats) {
  OnnxModel model;
  model.Input("x", {"1", "1", "5", "5"}).Output("y");
  onnx::AttributeProto* scales = model.Node("Constant", {}, {"scales"}).add_attribute();
  scales->set_name("value_floats");
  scales->set_type(onnx::AttributeProto::FLOATS);
  for (const float scale : {1.0F, 1.0F, 1.4F, 0.9F}) scales->add_floats(scale);
  model.Node("Resize", {"x", "", "scales"}, {"y"});
  const auto graph = model.Import();
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_EQ(graph->values[static_cast<size_t>(graph->outputs[0])].type.shape,
            (std::vector<int64_t>{1, 1, 7, 4}));
}

// ONNX's case test_resize_downsample_nearest of operator set 10: the pixel after the coordinate
// where an axis shrinks. The one before it where it grows.
TEST(ImportTest, NearestPixelsOfOpset10AreThoseOfItsTime) {
  for (const auto& [scale, expected] : {std::pair(0.6F, std::vector<int64_t>{1, 3}),
                                        std::pair(1.5F, std::vector<int64_t>{1, 1, 2, 3, 3, 4})}) {
    OnnxModel model(10);
    model.Ints("x", {1, 2, 3, 4}).Output("y", TensorProto::INT64);
    onnx::AttributeProto* scales = model.Node("Constant", {}, {"scales"}).add_attribute();
    scales->set_name("value_floats");
    scales->set_type(onnx::AttributeProto::FLOATS);
    scales->add_floats(scale);
    model.Node("Resize", {"x", "scales"}, {"y"});
    const auto graph = model.Import();
    ASSERT_TRUE(graph.ok()) << graph.status();
    const Value& y = graph->values[static_cast<size_t>(graph->outputs[0])];
    ASSERT_NE(y.constant, nullptr);
    EXPECT_EQ(y.constant->AsInt64s(), expected) << scale;
  }
}

TEST(ImportTest, ZerosAreQuantisedWithAScaleOfOne) {
  OnnxModel model;
  model.Zeros("x", {2, 3}).Output("y", TensorProto::UINT8).Output("scale");
  model.Output("zero", TensorProto::UINT8);
  model.Node("DynamicQuantizeLinear", {"x"}, {"y", "scale", "zero"});
  const auto graph = model.Import();
  ASSERT_TRUE(graph.ok()) << graph.status();
  const std::vector<double> expected[] = {std::vector<double>(6), {1}, {0}};
  for (size_t i = 0; i < 3; ++i) {
    const Value& value = graph->values[static_cast<size_t>(graph->outputs[i])];
    ASSERT_NE(value.constant, nullptr);
    EXPECT_EQ(value.constant->AsDoubles(), expected[i]) << i;
  }
}

TEST(ImportTest, AllUnsupportedNodesAreReportedAtOnce) {
  OnnxModel model;
  model.Input("x", {"2", "3"}).Output("y");
  model.Node("Frobnicate", {"x"}, {"a"});
  model.Node("Relu", {"a"}, {"b"});
  model.Node("FusedThing", {"b", "x"}, {"y"}).set_domain("com.example");
  const auto graph = model.Import();
  EXPECT_EQ(graph.status().code(), absl::StatusCode::kUnimplemented);
  EXPECT_EQ(StatusMessage(graph.status()),
            "2 nodes cannot be imported:\n"
            "  node a (Frobnicate) of f32[2,3]: no such operator in Hone\n"
            "  node y (com.example::FusedThing) of ?, f32[2,3]: no such operator in Hone\n"
            "docs/reference/operators.md lists the operators that Hone has: export the model with "
            "those");
}

TEST(ImportTest, MismatchNamesNodeOperatorAndShapes) {
  OnnxModel model;
  model.Input("x", {"2", "3"}).Zeros("w", {4, 5}).Output("y");
  model.Node("MatMul", {"x", "w"}, {"y"}).set_name("fc");
  const auto graph = model.Import();
  EXPECT_EQ(graph.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(StatusMessage(graph.status()),
            "node fc (MatMul) of f32[2,3], f32[4,5]: inner extents 3 and 4 differ");
}

TEST(ImportTest, DamagedGraphsAreRefusedWithTheReason) {
  const auto one = [](const std::function<void(OnnxModel&)>& change) {
    OnnxModel model;
    model.Input("x", {"2", "3"}).Output("y");
    change(model);
    return model.Error();
  };
  EXPECT_THAT(one([](OnnxModel& m) { SetInt(m.Node("Relu", {"x"}, {"y"}), "slope", 1); }),
              HasSubstr("unknown attribute 'slope' at opset 18"));
  EXPECT_THAT(one([](OnnxModel& m) { SetString(m.Node("Flatten", {"x"}, {"y"}), "axis", "1"); }),
              HasSubstr("attribute 'axis' must be INT, not STRING"));
  EXPECT_THAT(one([](OnnxModel& m) {
                m.Node("Add", {"x", "b"}, {"a"});
                m.Node("Relu", {"a"}, {"b"});
                m.Node("Relu", {"b"}, {"y"});
              }),
              HasSubstr("cycle through node a (Add)"));
  EXPECT_THAT(
      one([](OnnxModel& m) {
        m.Node("Add", {"x", "w"}, {"y"});
      }),
      HasSubstr("reads 'w', but that is no graph input, no initialiser and no node makes it"));
  EXPECT_THAT(one([](OnnxModel& m) { m.Node("Relu", {"x"}, {"z"}); }),
              HasSubstr("no node makes the output 'y'"));
  EXPECT_THAT(one([](OnnxModel& m) {
                m.Node("Relu", {"x"}, {"y"});
                m.Node("Abs", {"x"}, {"y"});
              }),
              HasSubstr("makes 'y', which exists already"));
  EXPECT_THAT(one([](OnnxModel& m) {
                m.Node("Relu", {"x", "x"}, {"y"});
              }),
              HasSubstr("2 inputs, not 1"));
  EXPECT_THAT(one([](OnnxModel& m) { m.Node("GlobalAveragePool", {"x"}, {"y"}); }),
              HasSubstr("must have rank 3 to 6, not 2"));
  EXPECT_THAT(one([](OnnxModel& m) {
                m.Ints("n", {int64_t{1} << 40, int64_t{1} << 40});
                m.Node("Tile", {"x", "n"}, {"y"});
              }),
              HasSubstr("overflow"));
  EXPECT_THAT(one([](OnnxModel& m) {
                m.Zeros("w", {2, 3});
                m.graph().mutable_initializer(0)->set_dims(0, 5);
                m.Node("Add", {"x", "w"}, {"y"});
              }),
              HasSubstr("initialiser 'w': f32[5,3] takes 60 bytes, but its data have 24"));
  EXPECT_THAT(one([](OnnxModel& m) { m.Node("Cast", {"x"}, {"y"}); }),
              HasSubstr("attribute 'to' is missing"));
}

TEST(ImportTest, OutputsAreCheckedAgainstTheirDeclaration) {
  OnnxModel model;
  model.Input("x", {"2"}).Output("y", TensorProto::INT64);
  model.Node("Relu", {"x"}, {"y"});
  EXPECT_EQ(model.Error(), "output 'y' is declared as i64, but its node makes f32[2]");
}

TEST(ImportTest, FilesThatAreNoModelsAreNamed) {
  EXPECT_THAT(StatusMessage(ImportBytes("").status()), HasSubstr("empty"));
  EXPECT_THAT(StatusMessage(ImportBytes("\x01\x02garbage").status()),
              HasSubstr("damaged or was cut off"));
  OnnxModel model;
  model.Input("x", {"2"}).Output("y");
  model.Node("Relu", {"x"}, {"y"});
  const std::string bytes = model.Bytes();
  EXPECT_THAT(StatusMessage(ImportBytes(bytes.substr(0, bytes.size() - 3)).status()),
              HasSubstr("damaged or was cut off"));
  EXPECT_THAT(StatusMessage(ImportBytes("hello\n").status()), HasSubstr("this is a text file"));
  EXPECT_THAT(StatusMessage(ImportBytes("version https://git-lfs.github.com/spec/v1\n").status()),
              HasSubstr("git lfs pull"));
  EXPECT_THAT(StatusMessage(ImportBytes("\x89HONE\r\n\x1a\n").status()),
              HasSubstr("a package of Hone, compiled already"));
  EXPECT_THAT(StatusMessage(ImportBytes(std::string("PK\x03\x04", 4) + "data").status()),
              HasSubstr("torch.onnx.export"));
  EXPECT_THAT(StatusMessage(ImportBytes(std::string("\x1c\0\0\0TFL3", 8) + "data").status()),
              HasSubstr("--tflite"));
  EXPECT_THAT(StatusMessage(ImportBytes(std::string("\x02\0\0\0\0\0\0\0{}", 10)).status()),
              HasSubstr("safetensors"));
  EXPECT_THAT(StatusMessage(ImportBytes(std::string("SQLite format 3\0....", 20)).status()),
              HasSubstr("a database of SQLite, as Hone's tuning logs are, no model"));
  const std::filesystem::path file =
      std::filesystem::path(::testing::TempDir()) / "graph_import_test.pb";
  std::ofstream(file) << "not a graph";
  EXPECT_THAT(StatusMessage(ImportOnnxFile(file).status()), HasSubstr("tf2onnx"));
  std::filesystem::remove(file);
  EXPECT_EQ(ImportOnnxFile(file).status().code(), absl::StatusCode::kNotFound);
}

TEST(ImportTest, OperatorSetsOutsideTheSupportedAreRefused) {
  for (const int64_t opset : {int64_t{0}, kNewestOpset + 1}) {
    OnnxModel model(opset);
    model.Input("x", {"2"}).Output("y");
    model.Node("Relu", {"x"}, {"y"});
    EXPECT_THAT(model.Error(), HasSubstr(fmt::format("operator set {} is not supported", opset)));
  }
}

TEST(ImportTest, OldOperatorSetsImportWhatMeansTheSame) {
  OnnxModel model(5);
  model.Input("x", {"2", "3"}).Output("y");
  SetInts(model.Node("Abs", {"x"}, {"a"}), "consumed_inputs", {0});
  SetInts(model.Node("Exp", {"a"}, {"b"}), "consumed_inputs", {0});
  model.Node("Sum", {"a", "b", "x"}, {"c"});
  SetFloat(model.Node("Clip", {"c"}, {"d"}), "max", 6);
  SetInt(model.Node("Dropout", {"d"}, {"e"}), "is_test", 1);
  SetString(model.Node("Cast", {"e"}, {"i"}), "to", "INT64");
  SetString(model.Node("Cast", {"i"}, {"y"}), "to", "FLOAT");
  const auto graph = model.Import();
  ASSERT_TRUE(graph.ok()) << graph.status();
  for (const char* part : {"fn=abs", "fn=exp", "fn=add", "to=i64", "to=f32"})
    EXPECT_THAT(ToText(*graph), HasSubstr(part));

  OnnxModel training(5);
  training.Input("x", {"2"}).Output("y");
  training.Node("Dropout", {"x"}, {"y"});
  EXPECT_THAT(training.Error(), HasSubstr("training mode (is_test is not 1) is not supported"));

  OnnxModel statistics(6);  // outputs of training do not make it train
  statistics.Input("x", {"2", "3"}).Output("y").Zeros("p", {3});
  SetInt(statistics.Node("BatchNormalization", {"x", "p", "p", "p", "p"}, {"y", "m", "v"}),
         "is_test", 1);
  EXPECT_THAT(statistics.Error(), HasSubstr("exists in training mode only"));
}

TEST(ImportTest, AnOperatorOfALaterSetIsRefusedWithTheOneItNeeds) {
  OnnxModel model(5);
  model.Input("x", {"1", "1", "2", "2"}).Output("y");
  model.Node("Tile", {"x", "x", "x"}, {"y"}).set_name("tiles");
  EXPECT_EQ(model.Error(),
            "node tiles (Tile) of f32[1,1,2,2], f32[1,1,2,2], f32[1,1,2,2]: Hone "
            "supports it from operator set 6 on, but this model uses 5; convert the model with "
            "onnx.version_converter");
}

TEST(ImportTest, InitialisersThatAreInputsTooAreConstants) {
  OnnxModel model;
  model.Input("x", {"2", "3"}).Input("w", {"2", "3"}).Zeros("w", {2, 3}).Output("y");
  model.Node("Add", {"x", "w"}, {"y"});
  const auto graph = model.Import();
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_EQ(graph->inputs.size(), 1U);
}

TEST(ImportTest, AnInitialiserThatIsAnInputTooCanBeGivenAnotherValueOrLeftOpen) {
  OnnxModel model;
  model.Input("x", {"2", "3"}).Input("w", {"2", "3"}).Zeros("w", {2, 3}).Zeros("own", {2, 3});
  model.Output("y").Node("Add", {"x", "w"}, {"y"});
  const std::vector<double> ones(6, 1);
  const auto bound = model.Import({.binds = {{"w", MakeConstant(ir::DType::kF32, {2, 3}, ones)}}});
  ASSERT_TRUE(bound.ok()) << bound.status();
  EXPECT_EQ(bound->inputs.size(), 1U);
  const ValueId w = bound->nodes.back().inputs[1];
  EXPECT_EQ(bound->values[static_cast<size_t>(w)].constant->AsDoubles(), ones);
  const auto open = model.Import({.shapes = {{"w", {2, 3}}}});
  ASSERT_TRUE(open.ok()) << open.status();
  EXPECT_EQ(open->inputs.size(), 2U);
  EXPECT_THAT(model.Error({.shapes = {{"w", {2, 4}}}}), HasSubstr("the model fixes it to 3"));
  EXPECT_THAT(model.Error({.shapes = {{"own", {2, 3}}}}), HasSubstr("has no such input"));
}

TEST(ImportTest, EveryOutputIsAValueOfItsOwn) {
  OnnxModel model;
  model.Input("x", {"2"}).Zeros("w", {2}).Output("same").Output("twice").Output("constant");
  model.Node("Identity", {"x"}, {"same"});
  model.Node("Identity", {"same"}, {"twice"});
  model.Node("Identity", {"w"}, {"constant"});
  const auto graph = model.Import();
  ASSERT_TRUE(graph.ok()) << graph.status();
  std::set<ValueId> distinct(graph->outputs.begin(), graph->outputs.end());
  distinct.insert(graph->inputs.begin(), graph->inputs.end());
  EXPECT_EQ(distinct.size(), 4U);
  EXPECT_EQ(graph->values[static_cast<size_t>(graph->outputs[1])].name, "twice");
}

TEST(ImportTest, DecidedBranchesAndLocalFunctionsAreInlined) {
  OnnxModel model;
  model.Input("x", {"2"}).Output("y");
  onnx::TensorProto& condition = *model.graph().add_initializer();
  condition.set_name("yes");
  condition.set_data_type(TensorProto::BOOL);
  condition.add_int32_data(1);
  onnx::NodeProto& branch = model.Node("If", {"yes"}, {"a"});
  for (const auto& [name, op] :
       {std::pair("then_branch", "Abs"), std::pair("else_branch", "Neg")}) {
    onnx::AttributeProto& attribute = *branch.add_attribute();
    attribute.set_name(name);
    attribute.set_type(onnx::AttributeProto::GRAPH);
    onnx::NodeProto& node = *attribute.mutable_g()->add_node();
    node.set_op_type(op);
    node.add_input("x");
    node.add_output("inner");
    attribute.mutable_g()->add_output()->set_name("inner");
  }
  onnx::FunctionProto& function = *model.model.add_functions();
  function.set_name("Slope");
  function.set_domain("local");
  function.add_opset_import()->set_version(18);
  function.add_input("in");
  function.add_output("out");
  onnx::NodeProto& body = *function.add_node();
  body.set_op_type("LeakyRelu");
  body.add_input("in");
  body.add_output("out");
  onnx::AttributeProto& reference = *body.add_attribute();
  reference.set_name("alpha");
  reference.set_ref_attr_name("steepness");
  reference.set_type(onnx::AttributeProto::FLOAT);
  onnx::NodeProto& call = model.Node("Slope", {"a"}, {"y"});
  call.set_domain("local");
  SetFloat(call, "steepness", 0.25F);
  const auto graph = model.Import();
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_THAT(ToText(*graph), HasSubstr("Unary(%1) {fn=abs}"));
  EXPECT_THAT(ToText(*graph), HasSubstr("constant {0.25}"));

  SetFloat(call, "stepness", 0.5F);
  EXPECT_THAT(model.Error(), HasSubstr("unknown attribute 'stepness'; the function has steepness"));
  call.mutable_attribute()->RemoveLast();
  SetInt(model.graph().mutable_node(0)[0], "els_branch", 1);
  EXPECT_THAT(model.Error(), HasSubstr("node a (If) of bool[]: unknown attribute 'els_branch'"));
  model.graph().mutable_node(0)->mutable_attribute()->RemoveLast();

  onnx::NodeProto& again = *function.add_node();  // a function that calls itself
  again.set_op_type("Slope");
  again.set_domain("local");
  again.add_input("in");
  again.add_output("unused");
  EXPECT_THAT(model.Error(), HasSubstr("call each other too deeply"));
}

TEST(ImportTest, ExternalDataMustBeWholeAndBesideTheModel) {
  const std::filesystem::path folder =
      std::filesystem::path(::testing::TempDir()) / "graph_import_test";
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "w.data") << std::string(32, 'a');
  const auto import = [&](const std::string& location, const std::string& offset) {
    OnnxModel model;
    model.Input("x", {"2", "3"}).Zeros("w", {2, 3}).Output("y");
    onnx::TensorProto& w = *model.graph().mutable_initializer(0);
    w.clear_raw_data();
    w.set_data_location(TensorProto::EXTERNAL);
    for (const auto& [key, value] : {std::pair("location", location), std::pair("offset", offset),
                                     std::pair("length", std::string("24"))}) {
      onnx::StringStringEntryProto& entry = *w.add_external_data();
      entry.set_key(key);
      entry.set_value(value);
    }
    model.Node("Add", {"x", "w"}, {"y"});
    return model.Error({.folder = folder});
  };
  EXPECT_EQ(import("w.data", "8"), "ok");
  EXPECT_THAT(import("w.data", "16"),
              HasSubstr("the tensor needs 24 bytes at offset 16 of 'w.data', but the file has 32 "
                        "bytes: is it complete?"));
  EXPECT_THAT(import("w.data", "-1"), HasSubstr("not a number of bytes"));
  EXPECT_THAT(import("missing", "0"), HasSubstr("keep the .data file beside the model"));
  EXPECT_THAT(import("../w.data", "0"), HasSubstr("must be a file beside the model"));
  EXPECT_THAT(import("/etc/hostname", "0"), HasSubstr("must be a file beside the model"));
  // Links inside the folder are fine, links out of it are not: an archive may hold one.
  std::filesystem::create_symlink("w.data", folder / "near.data");
  EXPECT_EQ(import("near.data", "0"), "ok");
  std::filesystem::create_symlink("/etc/passwd", folder / "far.data");
  EXPECT_THAT(import(".", "0"), HasSubstr("location '.' is a folder"));
  EXPECT_THAT(import("far.data", "0"), HasSubstr("leads out of the model's folder"));
  std::filesystem::create_directory_symlink("/etc", folder / "etc");
  EXPECT_THAT(import("etc/passwd", "0"), HasSubstr("leads out of the model's folder"));
  std::filesystem::remove_all(folder);
}

// Any byte but zero is true, ours are 0 and 1: kernels compute with them.
TEST(ImportTest, BoolsOfExternalDataAreZeroAndOne) {
  const std::filesystem::path folder =
      std::filesystem::path(::testing::TempDir()) / "graph_import_bools";
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "w.data") << std::string("\0\x01\x02\xff", 4);
  OnnxModel model;
  model.Input("x", {"4"}, TensorProto::BOOL).Output("y", TensorProto::BOOL);
  TensorProto& w = *model.graph().add_initializer();
  w.set_name("w");
  w.set_data_type(TensorProto::BOOL);
  w.add_dims(4);
  w.set_data_location(TensorProto::EXTERNAL);
  onnx::StringStringEntryProto& entry = *w.add_external_data();
  entry.set_key("location");
  entry.set_value("w.data");
  model.Node("And", {"x", "w"}, {"y"});
  const auto graph = model.Import({.folder = folder});
  ASSERT_TRUE(graph.ok()) << graph.status();
  for (const Value& value : graph->values) {
    if (value.constant == nullptr) continue;
    std::vector<int> bytes;
    for (std::byte byte : value.constant->bytes) bytes.push_back(std::to_integer<int>(byte));
    EXPECT_THAT(bytes, ::testing::ElementsAre(0, 1, 1, 1));
  }
  std::filesystem::remove_all(folder);
}

// As model hubs keep files: names in one folder are links to blobs in another.
TEST(ImportTest, LinksToModelAndDataInOneStoreAreFollowed) {
  const std::filesystem::path folder =
      std::filesystem::path(::testing::TempDir()) / "graph_import_store";
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder / "blobs");
  std::filesystem::create_directories(folder / "model");
  std::ofstream(folder / "blobs" / "aa") << std::string(24, 'a');
  OnnxModel model;
  model.Input("x", {"2", "3"}).Zeros("w", {2, 3}).Output("y");
  onnx::TensorProto& w = *model.graph().mutable_initializer(0);
  w.clear_raw_data();
  w.set_data_location(TensorProto::EXTERNAL);
  onnx::StringStringEntryProto& entry = *w.add_external_data();
  entry.set_key("location");
  entry.set_value("model.onnx.data");
  model.Node("Add", {"x", "w"}, {"y"});
  std::ofstream(folder / "blobs" / "bb", std::ios::binary) << model.Bytes();
  std::filesystem::create_symlink("../blobs/bb", folder / "model" / "model.onnx");
  std::filesystem::create_symlink("../blobs/aa", folder / "model" / "model.onnx.data");
  const auto graph = ImportOnnxFile(folder / "model" / "model.onnx", {});
  EXPECT_TRUE(graph.ok()) << graph.status();
  std::filesystem::remove_all(folder);
}

void AddBytes(OnnxModel& model, const std::string& name, int32_t type,
              const std::vector<int64_t>& shape, const std::string& bytes) {
  onnx::TensorProto& tensor = *model.graph().add_initializer();
  tensor.set_name(name);
  tensor.set_data_type(type);
  for (const int64_t extent : shape) tensor.add_dims(extent);
  tensor.set_raw_data(bytes);
}

// Small constants are computed while importing, but not what makes floats of weights.
TEST(ImportTest, DequantisedWeightsAreStillBytes) {
  OnnxModel model;
  model.Input("x", {"3", "8"}, onnx::TensorProto::UINT8).Output("y");
  const std::string one("\0\0\x80\x3f", 4);
  AddBytes(model, "scale", onnx::TensorProto::FLOAT, {}, one);
  AddBytes(model, "zero", onnx::TensorProto::UINT8, {}, "\x07");
  AddBytes(model, "w", onnx::TensorProto::INT8, {8, 2}, std::string(16, '\x05'));
  AddBytes(model, "w_scale", onnx::TensorProto::FLOAT, {2}, one + one);
  AddBytes(model, "w_zero", onnx::TensorProto::INT8, {2}, std::string(2, '\0'));
  model.Node("DequantizeLinear", {"x", "scale", "zero"}, {"x_real"});
  SetInt(model.Node("DequantizeLinear", {"w", "w_scale", "w_zero"}, {"w_real"}), "axis", 1);
  model.Node("MatMul", {"x_real", "w_real"}, {"y"});
  auto graph = model.Import();
  ASSERT_TRUE(graph.ok()) << graph.status();
  InterpreterEvaluator evaluator;
  EXPECT_EQ(RecogniseQuantised(*graph, {evaluator, ir::Target()}).value_or(-1), 1);
}

}  // namespace
}  // namespace hone::graph
