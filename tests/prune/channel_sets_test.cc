// Channels that are taken out of a model: whatever stands between those who make and those who read
// them, the outputs are those of the model that still has them, with zeros, to the last bit.

#include "graph/onnx_prune/channel_sets.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "tests/prune/taken_out.h"
#include "tests/quantise/small_network.h"

namespace hone::graph::onnx_prune {
namespace {

using client::testing::AddWeights;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;

class ChannelSetsTest : public TakenOutTest {
 protected:
  void Read() {
    ReadSource();
    sets_ = FindChannelSets(source_);
  }

  void Conv(const std::string& name, const std::string& from, const std::vector<int64_t>& shape,
            int64_t group = 1) {
    AddWeights(model_, name + ".w", shape, ++seed_);
    AddWeights(model_, name + ".b", {shape[0]}, ++seed_);
    onnx::NodeProto& node = model_.Node("Conv", {from, name + ".w", name + ".b"}, {name});
    node.set_name(name);
    const int64_t pad = shape[2] / 2;
    SetInts(node, "pads", {pad, pad, pad, pad});
    SetInt(node, "group", group);
  }
  void Gemm(const std::string& name, const std::string& from, const std::vector<int64_t>& shape) {
    AddWeights(model_, name + ".w", shape, ++seed_);
    AddWeights(model_, name + ".b", {1, shape[1]}, ++seed_);
    model_.Node("Gemm", {from, name + ".w", name + ".b"}, {name}).set_name(name);
  }
};

TEST_F(ChannelSetsTest, AResidualSumIsOneSetThroughNormsAndDepthwiseConvolutions) {
  model_.Input("x", {"1", "3", "8", "8"});
  Conv("a", "x", {8, 3, 3, 3});
  for (const char* name : {"scale", "shift", "mean"}) AddWeights(model_, name, {8}, ++seed_);
  model_.Zeros("variance", {8});
  model_.Node("BatchNormalization", {"a", "scale", "shift", "mean", "variance"}, {"n"});
  model_.Node("Sigmoid", {"n"}, {"r"});  // what is zero before is not after it
  Conv("b", "r", {8, 8, 3, 3});
  model_.Node("Add", {"b", "r"}, {"s"});
  Conv("d", "s", {8, 1, 3, 3}, 8);
  Conv("c", "d", {6, 8, 1, 1});
  model_.Node("GlobalAveragePool", {"c"}, {"p"});
  model_.Node("Flatten", {"p"}, {"f"});
  Gemm("g", "f", {6, 5});
  model_.Output("g");
  Read();
  ASSERT_THAT(sets_, SizeIs(2));
  EXPECT_THAT(Names(sets_[0].makers), UnorderedElementsAre("a", "b"));
  EXPECT_THAT(Names(sets_[0].readers), UnorderedElementsAre("b", "c"));
  EXPECT_THAT(sets_[0].depthwise, SizeIs(1));
  EXPECT_THAT(Names(sets_[1].readers), UnorderedElementsAre("g"));
  ExpectHalfIsTakenOut();
}

TEST_F(ChannelSetsTest, GatesAndPlacesOfFlattenedImages) {
  model_.Input("x", {"2", "3", "4", "4"});
  Conv("a", "x", {8, 3, 3, 3});
  model_.Node("GlobalAveragePool", {"a"}, {"p"});
  Conv("squeeze", "p", {4, 8, 1, 1});
  model_.Node("Relu", {"squeeze"}, {"q"});
  Conv("excite", "q", {8, 4, 1, 1});
  model_.Node("HardSigmoid", {"excite"}, {"h"});
  model_.Node("Mul", {"h", "a"}, {"m"});
  model_.Ints("shape", {0, -1});
  model_.Node("Reshape", {"m", "shape"}, {"f"});
  Gemm("g", "f", {128, 6});
  model_.Node("Relu", {"g"}, {"r"});
  Gemm("l", "r", {6, 3});
  model_.Output("l");
  Read();
  ASSERT_THAT(sets_, SizeIs(3));
  ExpectHalfIsTakenOut();
}

TEST_F(ChannelSetsTest, TheHiddenRowsOfATransformer) {
  model_.Input("x", {"2", "4", "6"});
  AddWeights(model_, "w1", {6, 10}, 1);
  AddWeights(model_, "b1", {10}, 2);
  AddWeights(model_, "w2", {10, 6}, 3);
  model_.Zeros("root", {1});
  model_.graph().mutable_initializer(3)->mutable_raw_data()->assign("\0\0\x80?", 4);
  model_.Node("MatMul", {"x", "w1"}, {"m"}).set_name("up");
  model_.Node("Add", {"b1", "m"}, {"h"});
  model_.Node("Div", {"h", "root"}, {"d"});
  model_.Node("Erf", {"d"}, {"e"});
  model_.Node("Add", {"e", "root"}, {"o"});
  model_.Node("Mul", {"h", "o"}, {"g"});
  model_.Node("MatMul", {"g", "w2"}, {"y"}).set_name("down");
  model_.Output("y");
  Read();
  ASSERT_THAT(sets_, SizeIs(1));
  EXPECT_EQ(sets_[0].channels, 10);
  ExpectHalfIsTakenOut();
}

TEST_F(ChannelSetsTest, TensorsThatExportersWriteOnceAreToldApart) {
  model_.Input("x", {"1", "3", "4", "4"});
  AddWeights(model_, "bias", {6}, 9);
  model_.Node("Identity", {"bias"}, {"same"});
  AddWeights(model_, "w1", {6, 3, 1, 1}, 1);
  AddWeights(model_, "w2", {6, 6, 1, 1}, 2);
  model_.Node("Conv", {"x", "w1", "same"}, {"a"}).set_name("a");
  model_.Node("Relu", {"a"}, {"r"});
  model_.Node("Conv", {"r", "w2", "bias"}, {"y"}).set_name("b");
  model_.Output("y");
  Read();
  ASSERT_THAT(sets_, SizeIs(1));
  ExpectHalfIsTakenOut();
}

TEST_F(ChannelSetsTest, AWeightThatOthersReadTooStaysTheirs) {
  model_.Input("x", {"2", "6"});
  AddWeights(model_, "w", {6, 6}, 1);
  model_.Node("MatMul", {"x", "w"}, {"m"}).set_name("first");
  model_.Node("Relu", {"m"}, {"r"});
  model_.Node("MatMul", {"r", "w"}, {"n"}).set_name("second");
  model_.Node("Add", {"n", "w"}, {"y"});
  model_.Input("unused", {"1"});
  model_.graph()
      .mutable_input(0)
      ->mutable_type()
      ->mutable_tensor_type()
      ->mutable_shape()
      ->mutable_dim(0)
      ->set_dim_value(6);
  model_.Output("y");
  Read();
  ASSERT_THAT(sets_, SizeIs(1));
  ExpectHalfIsTakenOut();
}

TEST_F(ChannelSetsTest, WhatOthersKnowOfStays) {
  model_.Input("x", {"1", "4", "4", "4"});
  Conv("out", "x", {4, 4, 1, 1});  // an output of the graph
  Conv("p", "x", {4, 4, 1, 1});    // joined with what no layer makes
  model_.Node("Add", {"p", "x"}, {"s"});
  Conv("q", "s", {4, 4, 1, 1});  // side by side with others
  model_.Node("Concat", {"q", "q"}, {"c"});
  SetInt(*model_.graph().mutable_node(model_.graph().node_size() - 1), "axis", 1);
  Conv("g", "c", {4, 4, 1, 1}, 2);  // in groups
  model_.Node("Softmax", {"g"}, {"t"});
  Conv("after", "t", {4, 4, 1, 1});
  Conv("reads", "out", {4, 4, 1, 1});
  model_.Ints("shape", {1, -1});
  model_.Node("Reshape", {"reads", "shape"}, {"f"});  // says how many there are
  Gemm("l", "f", {64, 3});
  for (const char* name : {"out", "after", "l"}) model_.Output(name);
  Read();
  EXPECT_THAT(sets_, SizeIs(0));
}

}  // namespace
}  // namespace hone::graph::onnx_prune
