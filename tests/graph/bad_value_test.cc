// Values that a model may not have, from attributes and from constants that decide shapes: the
// error says which value, and what may stand there.
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "tests/graph/onnx_model.h"

namespace hone::graph {
namespace {

using onnx::AttributeProto;
using onnx::TensorProto;
using ::testing::HasSubstr;
using Ints = std::vector<int64_t>;

constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
constexpr int64_t kBlock = int64_t{1} << 32;  // its square is 0 in 64 bits

struct BadValue {
  std::string name;
  std::function<void(OnnxModel&)> change;  ///< of a model with x f32[1,4,4,4] and output y
  std::string message;
  int64_t opset = 20;
};

onnx::NodeProto& AddOp(OnnxModel& m, const std::string& op, std::vector<std::string> more = {}) {
  more.insert(more.begin(), "x");
  return m.Node(op, more, {"y"});
}

void AddScalar(OnnxModel& m, const std::string& name, float value) {
  TensorProto& tensor = *m.graph().add_initializer();
  tensor.set_name(name);
  tensor.set_data_type(TensorProto::FLOAT);
  tensor.add_float_data(value);
}

void AddResize(OnnxModel& m, const std::string& attribute, const std::string& value) {
  m.Ints("s", {1, 4, 8, 8});
  SetString(AddOp(m, "Resize", {"", "", "s"}), attribute, value);
}

void AddRoiAlign(OnnxModel& m, const std::string& attribute, const std::string& value) {
  m.Zeros("r", {1, 4}).Ints("i", {0});
  onnx::NodeProto& node = AddOp(m, "RoiAlign", {"r", "i"});
  SetInt(node, "sampling_ratio", 1);
  SetString(node, attribute, value);
}

void AddGridSample(OnnxModel& m, const std::string& attribute, const std::string& value) {
  m.Zeros("g", {1, 2, 2, 2});
  SetString(AddOp(m, "GridSample", {"g"}), attribute, value);
}

void AddStft(OnnxModel& m, int64_t length, int64_t window_type) {
  m.Input("s", {"1", "1048576", "1"}).Ints("step", {1}).Ints("n", {length});
  m.Input("w", {std::to_string(length)}, static_cast<int32_t>(window_type));
  m.Node("STFT", {"s", "step", "w", "n"}, {"y"});
}

std::vector<BadValue> BadStrings() {
  const auto resize = [](const char* attribute) {
    return [attribute](OnnxModel& m) { AddResize(m, attribute, "odd"); };
  };
  const auto roi = [](const char* attribute) {
    return [attribute](OnnxModel& m) { AddRoiAlign(m, attribute, "odd"); };
  };
  const auto grid = [](const char* attribute) {
    return [attribute](OnnxModel& m) { AddGridSample(m, attribute, "odd"); };
  };
  const auto plain = [](const char* op, const char* attribute) {
    return [op, attribute](OnnxModel& m) { SetString(AddOp(m, op), attribute, "odd"); };
  };
  return {
      {"ResizeMode", resize("mode"), "'mode' is 'odd'; it must be one of nearest, linear, cubic"},
      {"ResizeCoordinates", resize("coordinate_transformation_mode"),
       "node y (Resize) of f32[1,4,4,4], -, -, i64[4]: attribute 'coordinate_transformation_mode' "
       "is 'odd'; it must be one of half_pixel, half_pixel_symmetric"},
      {"ResizeNearest", resize("nearest_mode"),
       "'nearest_mode' is 'odd'; it must be one of round_prefer_floor, round_prefer_ceil, floor, "
       "ceil"},
      {"ResizePolicy", resize("keep_aspect_ratio_policy"), "one of stretch, not_larger"},
      {"RoiAlignMode", roi("mode"), "'mode' is 'odd'; it must be one of avg, max"},
      {"RoiAlignCoordinates", roi("coordinate_transformation_mode"),
       "it must be one of half_pixel, output_half_pixel"},
      {"GridSampleMode", grid("mode"), "'mode' is 'odd'; it must be one of nearest, linear"},
      {"GridSamplePadding", grid("padding_mode"), "one of zeros, border, reflection"},
      {"PadModeOfNoPads",
       [](OnnxModel& m) {
         m.Ints("p", Ints(8, 0));
         SetString(AddOp(m, "Pad", {"p"}), "mode", "odd");
       },
       "'mode' is 'odd'; it must be one of constant, reflect, edge, wrap"},
      {"CastRounding",
       [](OnnxModel& m) {
         onnx::NodeProto& node = AddOp(m, "Cast");
         SetInt(node, "to", TensorProto::INT32);
         SetString(node, "round_mode", "odd");
       },
       "'round_mode' is 'odd'; it must be one of up, down, nearest"},
      {"GeluApproximate", plain("Gelu", "approximate"), "it must be one of none, tanh"},
      {"DepthToSpaceMode", plain("DepthToSpace", "mode"), "it must be one of DCR, CRD"},
      {"AutoPad",
       [](OnnxModel& m) {
         m.Zeros("w", {1, 4, 1, 1});
         SetString(AddOp(m, "Conv", {"w"}), "auto_pad", "odd");
       },
       "'auto_pad' is 'odd'; it must be one of NOTSET, SAME_UPPER, SAME_LOWER, VALID"},
      {"ScatterReduction",
       [](OnnxModel& m) {
         m.Ints("i", {0}).Input("u", {"4", "4", "4"});
         SetString(AddOp(m, "ScatterND", {"i", "u"}), "reduction", "odd");
       },
       "'reduction' is 'odd'; it must be one of none, add, mul, max, min"},
      {"Direction",
       [](OnnxModel& m) {
         m.Input("s", {"3", "1", "2"}).Zeros("w", {1, 2, 2}).Zeros("r", {1, 2, 2});
         SetString(m.Node("RNN", {"s", "w", "r"}, {"y"}), "direction", "odd");
       },
       "'direction' is 'odd'; it must be one of forward, reverse, bidirectional"},
      {"Activation",
       [](OnnxModel& m) {
         m.Input("s", {"3", "1", "2"}).Zeros("w", {1, 2, 2}).Zeros("r", {1, 2, 2});
         AttributeProto& list = *m.Node("RNN", {"s", "w", "r"}, {"y"}).add_attribute();
         list.set_name("activations");
         list.set_type(AttributeProto::STRINGS);
         list.add_strings("odd");
       },
       "attribute 'activations' has 'odd'; it must be one of relu, tanh"},
      {"EinsumResult", [](OnnxModel& m) { SetString(AddOp(m, "Einsum"), "equation", "abcd->aa"); },
       "names 'a' twice"},
  };
}

std::vector<BadValue> BadNumbers() {
  return {
      {"FilledWithNegativeExtent",
       [](OnnxModel& m) { m.Ints("s", {-1}).Node("ConstantOfShape", {"s"}, {"y"}); },
       "shape [-1] has a negative extent"},
      {"FilledWithTwoNegativeExtents",
       [](OnnxModel& m) {
         m.Ints("s", {-2, -3}).Node("ConstantOfShape", {"s"}, {"y"});
       },
       "shape [-2,-3] has a negative extent"},
      {"FilledBeyondAllSizes",
       [](OnnxModel& m) {
         m.Ints("s", {kMost, 3}).Node("ConstantOfShape", {"s"}, {"y"});
       },
       "overflows"},
      {"ExpandedToNegativeExtent",
       [](OnnxModel& m) {
         AddScalar(m, "c", 1);
         m.Ints("s", {-2, -3}).Node("Expand", {"c", "s"}, {"y"});
       },
       "shape [-2,-3] has a negative extent"},
      {"AffineGridOfNegativeSize",
       [](OnnxModel& m) {
         m.Zeros("t", {1, 2, 3}).Ints("s", {1, 1, -2, -3});
         m.Node("AffineGrid", {"t", "s"}, {"y"});
       },
       "size [1,1,-2,-3] must have 4 or 5 extents of at least 1"},
      {"DepthToSpaceBlock",
       [](OnnxModel& m) { SetInt(AddOp(m, "DepthToSpace"), "blocksize", kBlock); },
       "cannot be divided by blocksize 4294967296 squared"},
      {"SpaceToDepthBlock",
       [](OnnxModel& m) {
         m.Input("e", {"1", "4", "0", "0"});
         SetInt(m.Node("SpaceToDepth", {"e"}, {"y"}), "blocksize", kBlock);
       },
       "blocksize 4294967296 does not divide 0 x 0"},
      {"DeformConvGroups",
       [](OnnxModel& m) {
         m.Zeros("w", {4, 4, 1, 1}).Zeros("o", {1, 2, 4, 4});
         SetInt(AddOp(m, "DeformConv", {"w", "o"}), "group", kMost);
       },
       "group 9223372036854775807"},
      {"ConvTransposeReach",
       [](OnnxModel& m) {
         m.Input("l", {"1", "1", "1073741824", "1"}).Zeros("w", {1, 1, 1, 1});
         onnx::NodeProto& node = m.Node("ConvTranspose", {"l", "w"}, {"y"});
         SetInts(node, "strides", {int64_t{1} << 31, 1});
         SetInts(node, "output_shape", {1, 1});
       },
       "strides and dilations make an output extent that overflows"},
      {"ConvTransposeStride",
       [](OnnxModel& m) {
         m.Zeros("w", {4, 1, 2, 2});
         SetInts(AddOp(m, "ConvTranspose", {"w"}), "strides", {int64_t{1} << 31, 1});
       },
       "stride 2147483648 is too large for kernel size 2; it may exceed it by at most 1048576"},
      {"NormOfZero",
       [](OnnxModel& m) {
         onnx::NodeProto& node = AddOp(m, "LpPool");
         SetInts(node, "kernel_shape", {2, 2});
         SetInt(node, "p", 0);
       },
       "attribute p is 0, not 1 or more"},
      {"RangeToNowhere",
       [](OnnxModel& m) {
         AddScalar(m, "a", 0);
         AddScalar(m, "b", std::numeric_limits<float>::quiet_NaN());
         AddScalar(m, "c", 1);
         m.Node("Range", {"a", "b", "c"}, {"y"});
       },
       "start 0, limit nan and delta 1 make no range"},
      {"ResizeOfTooManyNeighbours",
       [](OnnxModel& m) {
         m.Input("l", {"1", "1", "1048576", "4"}).Ints("s", {1, 1, 3, 4});
         onnx::NodeProto& node = m.Node("Resize", {"l", "", "", "s"}, {"y"});
         SetString(node, "mode", "linear");
         SetInt(node, "antialias", 1);
       },
       "reads too many neighbours"},
      {"CropOfNoNumber",
       [](OnnxModel& m) {
         TensorProto& roi = *m.graph().add_initializer();
         roi.set_name("r");
         roi.set_data_type(TensorProto::FLOAT);
         roi.add_dims(8);
         for (int i = 0; i < 8; ++i) roi.add_float_data(std::numeric_limits<float>::quiet_NaN());
         m.Ints("s", {1, 4, 8, 8});
         SetString(AddOp(m, "Resize", {"r", "", "s"}), "coordinate_transformation_mode",
                   "tf_crop_and_resize");
       },
       "roi value nan is out of range"},
      {"StftWindowOfAnotherType", [](OnnxModel& m) { AddStft(m, 2, TensorProto::DOUBLE); },
       "different types f32 and f64"},
      {"StftFrames", [](OnnxModel& m) { AddStft(m, 4096, TensorProto::FLOAT); },
       "the frames would be a table of 1044481 x 4096; at most 33554432 elements"},
      {"BlocksOfAnAxis",
       [](OnnxModel& m) {
         m.Input("q", {"8388608"}, TensorProto::INT8).Input("s", {"2"});
         onnx::NodeProto& node = m.Node("DequantizeLinear", {"q", "s"}, {"y"});
         SetInt(node, "axis", 0);
         SetInt(node, "block_size", 4194304);
       },
       "the block of each element would be a table of 8388608 x 1", 21},
      {"AttentionPositions",
       [](OnnxModel& m) {
         m.Input("q", {"1", "1", "8388608", "1"});
         SetInt(m.Node("Attention", {"q", "q", "q"}, {"y"}), "is_causal", 1);
       },
       "the positions would be a table of 8388608 x 1", 23},
      {"ExtentsBesideNone",
       [](OnnxModel& m) {
         m.Input("e", {"0", "4611686018427387904", "4"});
         m.Node("Neg", {"e"}, {"y"});
       },
       "its size overflows"},
  };
}

class BadValueTest : public ::testing::TestWithParam<BadValue> {};

TEST_P(BadValueTest, IsRefusedWithTheReason) {
  OnnxModel model(GetParam().opset);
  model.Input("x", {"1", "4", "4", "4"}).Output("y");
  GetParam().change(model);
  const std::string error = model.Error();
  EXPECT_NE(error, "ok");
  EXPECT_THAT(error, HasSubstr(GetParam().message));
}

const auto kNameOf = [](const auto& each) { return each.param.name; };
INSTANTIATE_TEST_SUITE_P(Strings, BadValueTest, ::testing::ValuesIn(BadStrings()), kNameOf);
INSTANTIATE_TEST_SUITE_P(Numbers, BadValueTest, ::testing::ValuesIn(BadNumbers()), kNameOf);

TEST(BehindFailedNodeTest, UnknownAttributesBehindANodeThatFailedAreReportedToo) {
  OnnxModel model;
  model.Input("x", {"1", "6", "8", "8"}).Zeros("w", {4, 3, 7, 7}).Output("y");
  model.Node("Frobnicate", {"x"}, {"a"});
  onnx::NodeProto& conv = model.Node("Conv", {"a", "w"}, {"b"});
  SetInt(conv, "group", 2);
  SetInts(conv, "pad", {0, 0, 0, 0});  // pads
  SetInts(conv, "strides", {1, 1});
  onnx::NodeProto& good = model.Node("Softmax", {"b"}, {"c"});
  SetInt(good, "axis", 1);
  SetInt(model.Node("Gather", {"c", "c"}, {"d"}), "axes", 1);  // axis
  SetInt(model.Node("Relu", {"d"}, {"e"}), "slope", 1);
  SetInt(model.Node("Concat", {"e", "x"}, {"y"}), "axis", 1);
  model.Node("Relu", {"y", "x"}, {"z"});
  EXPECT_EQ(model.Error(),
            "5 nodes cannot be imported:\n"
            "  node a (Frobnicate) of f32[1,6,8,8]: no such operator in Hone\n"
            "  node b (Conv) of ?, f32[4,3,7,7]: unknown attribute 'pad' at opset 18\n"
            "  node d (Gather) of ?, ?: unknown attribute 'axes' at opset 18\n"
            "  node e (Relu) of ?: unknown attribute 'slope' at opset 18\n"
            "  node z (Relu) of ?, f32[1,6,8,8]: it has 2 inputs, not 1\n"
            "docs/reference/operators.md lists the operators that Hone has: export the model with "
            "those");
}

TEST(BehindFailedNodeTest, OperatorsThatNoModelCanHaveAreListedToo) {
  OnnxModel model;
  model.Input("x", {"4"}).Output("y");
  model.Node("Frob", {"x"}, {"a"});
  model.Node("Unique", {"a"}, {"b"});
  model.Node("Relu", {"b"}, {"y"});
  EXPECT_THAT(model.Error(), HasSubstr("2 nodes cannot be imported:\n"
                                       "  node a (Frob) of f32[4]: no such operator in Hone\n"
                                       "  node b (Unique) of ?: the number of its results"));
}

TEST(BadValueTest, OperatorsOfOtherDomainsSayWhatToGiveInstead) {
  for (const auto& [domain, advice] :
       {std::pair("com.microsoft", "compile the model as it was exported"),
        std::pair("ai.onnx.ml", "not trees or strings")}) {
    OnnxModel model;
    model.Input("x", {"2", "3"}).Output("y");
    model.Node("FusedThing", {"x"}, {"y"}).set_domain(domain);
    EXPECT_THAT(model.Error(), HasSubstr(advice));
  }
}

}  // namespace
}  // namespace hone::graph
