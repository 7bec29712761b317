// Constants and inputs of INT4 and UINT4: what operators read of them, and who may.

#include <string>
#include <tuple>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "tests/graph/onnx_model.h"

namespace hone::graph {
namespace {

using onnx::TensorProto;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TensorProto& AddTensor(OnnxModel& model, const std::string& name, int32_t type,
                       const std::vector<int64_t>& shape) {
  TensorProto& tensor = *model.graph().add_initializer();
  tensor.set_name(name);
  tensor.set_data_type(type);
  for (const int64_t extent : shape) tensor.add_dims(extent);
  return tensor;
}

/// What a Cast makes of the tensor `w`.
std::vector<double> CastOf(OnnxModel& model) {
  SetInt(model.Node("Cast", {"w"}, {"y"}), "to", TensorProto::FLOAT);
  model.Output("y");
  const auto graph = model.Import();
  EXPECT_TRUE(graph.ok()) << graph.status();
  if (!graph.ok()) return {};
  const ConstantPtr& known = graph->values[static_cast<size_t>(graph->outputs[0])].constant;
  return known == nullptr ? std::vector<double>() : known->AsDoubles();
}

// ONNX's TensorProto: the first element is in the low half of a byte, the last one of an odd number
// alone in its own.
TEST(FourBitsTest, TheLowHalfOfAByteComesFirst) {
  OnnxModel model(21);
  AddTensor(model, "w", TensorProto::INT4, {5}).set_raw_data("\x81\xf7\x05", 3);
  EXPECT_THAT(CastOf(model), ElementsAre(1, -8, 7, -1, 5));
  OnnxModel other(21);
  AddTensor(other, "w", TensorProto::UINT4, {2, 2}).set_raw_data("\x81\xf7", 2);
  EXPECT_THAT(CastOf(other), ElementsAre(1, 8, 7, 15));
}

TEST(FourBitsTest, TypedFieldsHoldAByteEach) {
  OnnxModel model(21);
  TensorProto& tensor = AddTensor(model, "w", TensorProto::INT4, {3});
  tensor.add_int32_data(0x91);
  tensor.add_int32_data(0x03);
  EXPECT_THAT(CastOf(model), ElementsAre(1, -7, 3));
}

TEST(FourBitsTest, AWrongNumberOfBytesIsRefused) {
  OnnxModel model(21);
  AddTensor(model, "w", TensorProto::INT4, {5}).set_raw_data("\x81\xf7", 2);
  SetInt(model.Node("Cast", {"w"}, {"y"}), "to", TensorProto::FLOAT);
  model.Output("y");
  EXPECT_THAT(model.Error(), HasSubstr("u8[3] takes 3 bytes, but its data have 2"));
}

TEST(FourBitsTest, WhatMovesThemGivesThemOn) {
  OnnxModel model(21);
  AddTensor(model, "bytes", TensorProto::INT4, {2, 2}).set_raw_data("\x21\x43", 2);
  SetInts(model.Node("Transpose", {"bytes"}, {"turned"}), "perm", {1, 0});
  model.Node("Identity", {"turned"}, {"w"});
  EXPECT_THAT(CastOf(model), ElementsAre(1, 3, 2, 4));
}

// One number a byte, of which the range is known.
TEST(FourBitsTest, InputsAreTakenAsBytes) {
  for (const auto& [type, dtype, name, low, high] :
       {std::tuple(TensorProto::INT4, ir::DType::kI8, std::string("INT4"), -8.0, 8.0),
        std::tuple(TensorProto::UINT4, ir::DType::kU8, std::string("UINT4"), 0.0, 16.0)}) {
    OnnxModel model(21);
    model.Input("w", {"2", "3"}, type);
    SetInts(model.Node("Transpose", {"w"}, {"turned"}), "perm", {1, 0});
    SetInt(model.Node("Cast", {"turned"}, {"y"}), "to", TensorProto::FLOAT);
    model.Output("y");
    const auto graph = model.Import();
    ASSERT_TRUE(graph.ok()) << graph.status();
    const Value& input = graph->values[static_cast<size_t>(graph->inputs[0])];
    EXPECT_EQ(input.type.dtype, dtype);
    EXPECT_EQ(input.range, (ir::ValueRange{low, high}));
    OnnxModel through(21);
    through.Input("w", {"2"}, type);
    through.Node("Neg", {"w"}, {"y"});
    through.Output("y");
    EXPECT_THAT(through.Error(), HasSubstr("elements of type " + name + " are not supported"));
    OnnxModel like(21);
    like.Input("x", {"2"}).Input("w", {"2"}, type);
    like.Node("CastLike", {"x", "w"}, {"y"});
    like.Output("y");
    EXPECT_THAT(like.Error(), HasSubstr("elements of type " + name + " are not supported"));
  }
}

// The value is the same, and still one that all operators read.
TEST(FourBitsTest, ACastToBytesMakesOrdinaryNumbers) {
  OnnxModel model(21);
  model.Input("x", {"2"}, TensorProto::UINT4);
  AddTensor(model, "w", TensorProto::UINT4, {2}).set_raw_data("\x21", 1);
  for (const std::string name : {"x", "w"})
    SetInt(model.Node("Cast", {name}, {name + ".b"}), "to", TensorProto::UINT8);
  model.Node("Add", {"x.b", "w.b"}, {"sum"});
  model.Output("sum", TensorProto::UINT8).Output("x.b", TensorProto::UINT8);
  const auto graph = model.Import();
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_EQ(graph->outputs.size(), 2U);
}

// Results of four bits would have to saturate to these.
TEST(FourBitsTest, OthersThatReadThemAreRefused) {
  OnnxModel model(21);
  model.Input("x", {"2"});
  AddTensor(model, "scale", TensorProto::FLOAT, {}).add_float_data(1);
  AddTensor(model, "zero", TensorProto::INT4, {}).set_raw_data("\x01", 1);
  model.Node("Identity", {"zero"}, {"own"});
  model.Node("QuantizeLinear", {"x", "scale", "own"}, {"y"}).set_name("quantiser");
  model.Output("y", TensorProto::INT4);
  EXPECT_THAT(model.Error(), HasSubstr("node quantiser (QuantizeLinear)"));
  EXPECT_THAT(model.Error(), HasSubstr("elements of type INT4 are not supported"));
  OnnxModel output(21);
  AddTensor(output, "zero", TensorProto::INT4, {2}).set_raw_data("\x01", 1);
  output.Node("Identity", {"zero"}, {"y"});
  output.Output("y", TensorProto::INT4);
  EXPECT_THAT(output.Error(), HasSubstr("output 'y': elements of type INT4 are not supported"));
}

}  // namespace
}  // namespace hone::graph
