// What does not fit is found while shapes are inferred, before anything runs, for every operator:
// the message names the node, the operator and the types, and says what does not fit.
#include <set>
#include <string>
#include <vector>

#include "fmt/format.h"
#include "gtest/gtest.h"

#include "base/status.h"
#include "graph/op.h"
#include "tests/graph/onnx_model.h"

namespace hone::graph {
namespace {

using ir::DType;
using Ints = std::vector<int64_t>;

struct BadCall {
  std::string op;
  Attributes attributes;
  std::vector<TensorType> inputs;
  std::string reason;
};

TensorType F32(Ints shape) { return {DType::kF32, std::move(shape)}; }
TensorType I64(Ints shape) { return {DType::kI64, std::move(shape)}; }
TensorType I8(Ints shape) { return {DType::kI8, std::move(shape)}; }

std::vector<BadCall> BadContractions() {
  return {
      {"Conv",
       {},
       {F32({1, 3, 8, 8}), F32({4, 2, 3, 3})},
       "the weights have 2 input channels in each group, but the input has 3 channels in 1 groups"},
      {"ConvInteger", {}, {I8({1, 3, 8, 8}), F32({4, 3, 3, 3})}, "it takes i8 and u8, not f32"},
      {"ConvTranspose",
       {},
       {F32({1, 3, 8, 8}), F32({4, 4, 2, 2})},
       "the weights have 4 input channels in 1 groups, but the input has 3"},
      {"DeformConv",
       {{"strides", Ints{1, 1}}, {"dilations", Ints{1, 1}}, {"pads", Ints{0, 0, 0, 0}}},
       {F32({1, 3, 4, 4}), F32({2, 3, 2, 2}), F32({1, 7, 3, 3})},
       "offsets must be [1,8,3,3], not f32[1,7,3,3]"},
      {"Col2Im",
       {{"image", Ints{4, 4}},
        {"block", Ints{2, 2}},
        {"strides", Ints{1, 1}},
        {"dilations", Ints{1, 1}},
        {"pads", Ints{0, 0, 0, 0}}},
       {F32({1, 8, 7})},
       "the input f32[1,8,7] does not hold blocks of 4 elements at 9 positions"},
      {"MatMul", {}, {F32({2, 3}), F32({4, 5})}, "inner extents 3 and 4 differ"},
      {"MatMulInteger", {}, {I8({2, 3}), I64({3, 5})}, "it takes i8 and u8, not i64"},
      {"MatMulNarrow",
       {},
       {F32({2, 8}), I8({5, 1, 6}), F32({5, 1})},
       "the weights i8[5,1,6] of 8 bits do not fit f32[2,8]"},
      {"Einsum",
       {{"operands", std::vector<std::string>{"ij", "jk"}}, {"result", std::string("ik")}},
       {F32({2, 3}), F32({4, 5})},
       "'j' has extents 3 and 4"},
      {"LSTM",
       {},
       {F32({3, 1, 2}), F32({1, 8, 3}), F32({1, 8, 2})},
       "W must be f32[1,8,2], not f32[1,8,3]"},
      {"GRU",
       {},
       {F32({3, 1, 2}), F32({1, 6, 2}), F32({1, 7, 2})},
       "R must be f32[1,6,2], not f32[1,7,2]"},
      {"RNN",
       {},
       {F32({3, 1, 2}), F32({1, 2, 2}), F32({1, 2, 2}), F32({1, 5})},
       "B must be f32[1,4], not f32[1,5]"},
  };
}

std::vector<BadCall> BadRows() {
  return {
      {"Activation", {{"fn", std::string("silu")}}, {I64({2})}, "it takes floats, not i64"},
      {"ArgReduce",
       {{"fn", std::string("max")}, {"axis", int64_t{2}}},
       {F32({2, 3})},
       "axis 2 is outside [-2, 2) of rank 2"},
      {"BatchNorm",
       {},
       {F32({1, 4, 2, 2}), F32({3}), F32({4}), F32({4}), F32({4})},
       "input 1 must have 4 values, not f32[3]"},
      {"CumSum", {{"axis", int64_t{-3}}}, {F32({2, 3})}, "axis -3 is outside [-2, 2) of rank 2"},
      {"LocalResponseNorm", {{"size", int64_t{0}}}, {F32({1, 4, 2, 2})}, "size 0 is out of range"},
      {"GroupNorm",
       {{"groups", int64_t{4}}},
       {F32({1, 6, 5})},
       "6 channels do not split into 4 groups"},
      {"Normalise",
       {{"axes", Ints{1}}},
       {F32({2, 3}), F32({4})},
       "shapes [2,3] and [4] do not broadcast"},
      {"Pool",
       {{"kind", std::string("max")}, {"kernel", Ints{3}}, {"strides", Ints{1}}},
       {F32({1, 2, 4, 4})},
       "kernel_shape has 1 values, but the input has 2 spatial axes"},
      {"Reduce",
       {{"fn", std::string("l2")}, {"axes", Ints{0}}},
       {I64({2, 3})},
       "l2 does not take i64"},
      {"Softmax", {{"axis", int64_t{4}}}, {F32({2, 3})}, "axis 4 is outside [-2, 2) of rank 2"},
  };
}

std::vector<BadCall> BadElements() {
  return {
      {"Unary", {{"fn", std::string("not")}}, {F32({2, 3})}, "not does not take f32"},
      {"Binary",
       {{"fn", std::string("add")}},
       {F32({2, 3}), F32({4})},
       "shapes [2,3] and [4] do not broadcast"},
      {"Select", {}, {F32({2}), F32({2}), F32({2})}, "the condition must be bool, not f32"},
      {"Cast", {{"to", std::string("f8")}}, {F32({2})}, "unknown type 'f8'"},
  };
}

std::vector<BadCall> BadMoves() {
  return {
      {"Concat",
       {{"axis", int64_t{0}}},
       {F32({2, 3}), F32({2, 4})},
       "input 1 (f32[2,4]) cannot be joined to input 0 (f32[2,3]) along axis 0"},
      {"Expand", {{"shape", Ints{2, 4}}}, {F32({2, 3})}, "shapes [2,3] and [2,4] do not broadcast"},
      {"Pad",
       {{"begin", Ints{0}}, {"end", Ints{0}}},
       {F32({2, 3})},
       "2 pads are given for an input of rank 2"},
      {"Reshape", {{"shape", Ints{5}}}, {F32({2, 3})}, "6 elements do not fit shape [5]"},
      {"Resize",
       {{"sizes", Ints{4}}, {"scales", std::vector<double>{2}}},
       {F32({1, 2, 4})},
       "1 sizes and 1 scales are given for an input of rank 3"},
      {"Slice",
       {{"starts", Ints{0, 1}}, {"steps", Ints{1, 1}}, {"sizes", Ints{2, 3}}},
       {F32({2, 3})},
       "slice start=1 step=1 size=3 goes beyond axis 1 of extent 3"},
      {"Tile",
       {{"repeats", Ints{int64_t{1} << 62, 4}}},
       {F32({2, 3})},
       "repeats [4611686018427387904,4] are negative or too large"},
      {"Transpose",
       {{"perm", Ints{0, 0}}},
       {F32({2, 3})},
       "perm [0,0] is no permutation of 2 axes"},
      {"Trilu", {}, {F32({3})}, "it takes an input of rank 2 or more, not 1"},
  };
}

std::vector<BadCall> BadIndices() {
  return {
      {"Causal",
       {},
       {F32({2, 3}), F32({3})},
       "what hidden elements are must be one f32, not f32[3]"},
      {"Gather", {}, {F32({2, 3}), F32({2})}, "the indices must be integers, not f32"},
      {"Lookup", {}, {F32({2, 3}), F32({256})}, "f32[2,3] cannot index the table f32[256]"},
      {"GatherElements",
       {{"axis", int64_t{0}}},
       {F32({2, 3}), I64({2, 4})},
       "the indices i64[2,4] do not fit the input f32[2,3]"},
      {"GatherND",
       {},
       {F32({2, 3}), I64({1, 3})},
       "the indices' last extent 3 is too large for an input of rank 2"},
      {"GridSample",
       {},
       {F32({1, 2, 4, 4}), F32({1, 3, 3, 3})},
       "the grid f32[1,3,3,3] does not fit the input f32[1,2,4,4]"},
      {"ReverseSequence",
       {},
       {F32({4, 2}), I64({3})},
       "the lengths must be 2 integers, not i64[3]"},
      {"RoiAlign",
       {},
       {F32({1, 2, 4, 4}), F32({5, 3}), I64({5})},
       "rois f32[5,3] and batch_indices i64[5] do not fit the input f32[1,2,4,4]"},
      {"ScatterElements",
       {},
       {F32({2, 3}), I64({2, 3}), F32({2, 2})},
       "the indices i64[2,3] and updates f32[2,2] do not fit the data f32[2,3]"},
      {"ScatterND",
       {},
       {F32({2, 3}), I64({4, 1}), F32({4, 2})},
       "updates must be [4,3], not f32[4,2]"},
      {"TensorScatter",
       {},
       {F32({1, 4, 3}), F32({1, 5, 3})},
       "the update f32[1,5,3] does not fit the cache f32[1,4,3]"},
      {"TopK", {{"k", int64_t{4}}}, {F32({2, 3})}, "k is 4, but the axis has 3 elements"},
  };
}

std::vector<BadCall> BadCalls() {
  std::vector<BadCall> all;
  for (const auto& list : {BadContractions(), BadRows(), BadElements(), BadMoves(), BadIndices()}) {
    all.insert(all.end(), list.begin(), list.end());
  }
  // What a routine of the runtime does, as loop nests: they refuse the same.
  for (size_t i = 0, known = all.size(); i < known; ++i) {
    if (FindOp(all[i].op + "Stages") == nullptr) continue;
    BadCall bad = all[i];
    bad.op += "Stages";
    all.push_back(std::move(bad));
  }
  return all;
}

class MismatchTest : public ::testing::TestWithParam<BadCall> {};

TEST_P(MismatchTest, NamesNodeOperatorTypesAndReason) {
  const BadCall& bad = GetParam();
  Graph graph;
  Node node{.op = bad.op, .origin = "here", .attributes = bad.attributes};
  std::string types;
  for (const TensorType& type : bad.inputs) {
    node.inputs.push_back(graph.AddValue({.name = "input", .type = type}));
    types += (types.empty() ? "" : ", ") + ToText(type);
  }
  const auto made = AppendNode(graph, std::move(node));
  EXPECT_EQ(made.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(StatusMessage(made.status()),
            fmt::format("node here ({}) of {}: {}", bad.op, types, bad.reason));
  EXPECT_TRUE(graph.nodes.empty());
}

INSTANTIATE_TEST_SUITE_P(EveryOperator, MismatchTest, ::testing::ValuesIn(BadCalls()),
                         [](const auto& each) { return each.param.op; });

// A new operator needs a line above.
TEST(MismatchTableTest, HasEveryOperator) {
  std::set<std::string> listed;
  for (const BadCall& bad : BadCalls()) listed.insert(bad.op);
  for (const OpDefinition* op : AllOps()) {
    EXPECT_TRUE(listed.contains(std::string(op->name))) << op->name << " has no bad call";
  }
  EXPECT_EQ(listed.size(), AllOps().size());
}

TEST(OverflowTest, InitialisersInputsAndShapeOptionsAreRefused) {
  constexpr int64_t kHuge = int64_t{1} << 40;
  OnnxModel initialiser;
  initialiser.Input("x", {"2", "3"}).Zeros("w", {2, 3}).Output("y");
  for (int axis = 0; axis < 2; ++axis)
    initialiser.graph().mutable_initializer(0)->set_dims(axis, kHuge);
  initialiser.Node("Add", {"x", "w"}, {"y"});
  EXPECT_EQ(initialiser.Error(),
            "initialiser 'w': the size of f32[1099511627776,1099511627776] overflows");

  const std::string text = std::to_string(kHuge);
  OnnxModel input;
  input.Input("x", {text, text}).Output("y");
  input.Node("Relu", {"x"}, {"y"});
  const std::string overflow =
      "input 'x' is f32[1099511627776,1099511627776]: its size overflows; give smaller extents";
  EXPECT_EQ(input.Error(), overflow);

  OnnxModel deep;
  deep.Input("x", {"1", "1", "1", "1", "1", "1", "2"}).Output("y");
  deep.Node("Relu", {"x"}, {"y"});
  EXPECT_EQ(deep.Error(), "input 'x' is f32[1,1,1,1,1,1,2]: rank 7; ranks 0 to 6 are supported");

  OnnxModel open;
  open.Input("x", {"rows", "columns"}).Output("y");
  open.Node("Relu", {"x"}, {"y"});
  EXPECT_EQ(open.Error({.shapes = {{"x", {kHuge, kHuge}}}}), overflow);
  EXPECT_EQ(open.Error({.dims = {{"rows", kHuge}, {"columns", kHuge}}}), overflow);
}

}  // namespace
}  // namespace hone::graph
