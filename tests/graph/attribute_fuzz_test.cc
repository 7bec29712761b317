// Odd values in attributes, in constants that decide shapes and in extents of inputs must end in a
// graph whose nodes become Stages, or in an error, never in a crash. HONE_FUZZ_SEED repeats a run.
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <iterator>
#include <limits>
#include <string>
#include <vector>

#include "gtest/gtest.h"

#include "base/core/random.h"
#include "graph/op.h"
#include "ir/workload_builder.h"
#include "tests/graph/onnx_model.h"

namespace hone::graph {
namespace {

using onnx::AttributeProto;
using onnx::TensorProto;
using Ints = std::vector<int64_t>;

constexpr int64_t kLeast = std::numeric_limits<int64_t>::min();
constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
constexpr int64_t kBlock = int64_t{1} << 32;  // its square is 0 in 64 bits

onnx::NodeProto& AddOp(OnnxModel& m, const std::string& op, std::vector<std::string> more = {}) {
  more.insert(more.begin(), "x");
  return m.Node(op, more, {"y"});
}

/// Nodes that import, with constants "c…" that decide shapes.
struct Start {
  std::string name;
  std::function<void(OnnxModel&)> add;
  int64_t opset = 20;
};

std::vector<Start> WindowStarts() {
  const auto window = [](const char* op, Ints weights, bool kernel) {
    return Start{op, [op, weights, kernel](OnnxModel& m) {
                   if (!kernel) m.Zeros("w", weights);
                   onnx::NodeProto& node = AddOp(
                       m, op, kernel ? std::vector<std::string>{} : std::vector<std::string>{"w"});
                   SetInts(node, "strides", {1, 1});
                   SetInts(node, "pads", {0, 1, 0, 1});
                   SetString(node, "auto_pad", "NOTSET");
                   SetInts(node, "dilations", {1, 1});
                   if (kernel) SetInts(node, "kernel_shape", {2, 2});
                   if (!kernel) SetInt(node, "group", 1);
                   if (std::string(op) == "LpPool") SetInt(node, "p", 2);
                   if (std::string(op) == "ConvTranspose") SetInts(node, "output_padding", {0, 0});
                 }};
  };
  return {window("Conv", {2, 4, 2, 2}, false),
          window("ConvTranspose", {4, 2, 2, 2}, false),
          window("MaxPool", {}, true),
          window("AveragePool", {}, true),
          window("LpPool", {}, true),
          {"DeformConv",
           [](OnnxModel& m) {
             m.Zeros("w", {2, 2, 1, 1}).Zeros("o", {1, 4, 4, 4});
             onnx::NodeProto& node = AddOp(m, "DeformConv", {"w", "o"});
             SetInt(node, "group", 2);
             SetInt(node, "offset_group", 2);
             SetInts(node, "strides", {1, 1});
           }},
          {"Col2Im",
           [](OnnxModel& m) {
             m.Input("b", {"1", "8", "9"}).Ints("c0", {4, 4}).Ints("c1", {2, 2});
             onnx::NodeProto& node = m.Node("Col2Im", {"b", "c0", "c1"}, {"y"});
             SetInts(node, "strides", {1, 1});
             SetInts(node, "dilations", {1, 1});
             SetInts(node, "pads", {0, 0, 0, 0});
           }},
          {"MaxUnpool", [](OnnxModel& m) {
             m.Input("i", {"1", "4", "4", "4"}, TensorProto::INT64).Ints("c0", {1, 4, 9, 9});
             onnx::NodeProto& node = AddOp(m, "MaxUnpool", {"i", "c0"});
             SetInts(node, "kernel_shape", {2, 2});
             SetInts(node, "strides", {2, 2});
             SetInts(node, "pads", {0, 0, 0, 0});
           }}};
}

std::vector<Start> ShapeStarts() {
  const auto constants = [](const char* op, std::vector<Ints> values) {
    return Start{op, [op, values](OnnxModel& m) {
                   std::vector<std::string> names;
                   for (const Ints& each : values) {
                     names.push_back("c" + std::to_string(names.size()));
                     m.Ints(names.back(), each);
                   }
                   AddOp(m, op, names);
                 }};
  };
  const auto integer = [](const char* op, const char* attribute, int64_t value) {
    return Start{op,
                 [op, attribute, value](OnnxModel& m) { SetInt(AddOp(m, op), attribute, value); }};
  };
  return {constants("Reshape", {{4, -1, 2}}),
          constants("Expand", {{2, 4, 4, 4}}),
          constants("Tile", {{1, 2, 1, 3}}),
          constants("Squeeze", {{0}}),
          constants("Unsqueeze", {{0, 2}}),
          constants("Slice", {{3, 0}, {-9, 4}, {2, 3}, {-2, 1}}),
          constants("Pad", {{0, 0, 1, 0, 0, 0, 0, 2}}),
          constants("CenterCropPad", {{1, 4, 2, 9}}),
          constants("ReduceSum", {{1, -1}}),
          constants("CumSum", {{1}}),
          constants("TopK", {{2}}),
          constants("Trilu", {{1}}),
          constants("Gather", {{0}}),
          integer("DepthToSpace", "blocksize", 2),
          integer("SpaceToDepth", "blocksize", 2),
          integer("Flatten", "axis", 2),
          integer("Softmax", "axis", 1),
          integer("LRN", "size", 3),
          integer("Hardmax", "axis", 1),
          integer("ArgMax", "axis", 1),
          integer("GlobalLpPool", "p", 3),
          integer("LpNormalization", "axis", 1),
          integer("Shape", "start", 1),
          {"Split",
           [](OnnxModel& m) {
             m.Ints("c0", {1, 3});
             SetInt(m.Node("Split", {"x", "c0"}, {"y", "z"}), "axis", 1);
           }},
          {"SplitEqually",
           [](OnnxModel& m) {
             onnx::NodeProto& node = m.Node("Split", {"x"}, {"y", "z"});
             SetInt(node, "axis", 1);
             SetInt(node, "num_outputs", 2);
           }},
          {"ConstantOfShape",
           [](OnnxModel& m) {
             m.Ints("c0", {2, 3}).Node("ConstantOfShape", {"c0"}, {"y"});
           }},
          {"OneHot",
           [](OnnxModel& m) {
             m.Ints("i", {0, 1}).Ints("c0", {3}).Zeros("v", {2});
             SetInt(m.Node("OneHot", {"i", "c0", "v"}, {"y"}), "axis", 0);
           }},
          {"Range",
           [](OnnxModel& m) {
             m.Ints("c0", {0}).Ints("c1", {9}).Ints("c2", {2});
             m.Node("Range", {"c0", "c1", "c2"}, {"y"});
           }},
          {"EyeLike",
           [](OnnxModel& m) {
             m.Input("e", {"4", "5"});
             SetInt(m.Node("EyeLike", {"e"}, {"y"}), "k", 1);
           }},
          {"GatherND", [](OnnxModel& m) {
             m.Ints("c0", {0});
             SetInt(AddOp(m, "GatherND", {"c0"}), "batch_dims", 0);
           }}};
}

std::vector<Start> OtherStarts() {
  return {{"Resize",
           [](OnnxModel& m) {
             m.Ints("c0", {1, 4, 8, 3});
             onnx::NodeProto& node = AddOp(m, "Resize", {"", "", "c0"});
             SetInts(node, "axes", {0, 1, 2, 3});
             SetInt(node, "antialias", 1);
             SetString(node, "mode", "cubic");
             SetFloat(node, "cubic_coeff_a", -0.5F);
             SetFloat(node, "extrapolation_value", 0);
             SetString(node, "keep_aspect_ratio_policy", "not_larger");
           }},
          {"RoiAlign",
           [](OnnxModel& m) {
             m.Zeros("r", {1, 4}).Ints("i", {0});
             onnx::NodeProto& node = AddOp(m, "RoiAlign", {"r", "i"});
             SetInt(node, "sampling_ratio", 2);
             SetInt(node, "output_height", 2);
             SetInt(node, "output_width", 2);
             SetFloat(node, "spatial_scale", 0.5F);
           }},
          {"GridSample",
           [](OnnxModel& m) {
             m.Zeros("g", {1, 2, 2, 2});
             onnx::NodeProto& node = AddOp(m, "GridSample", {"g"});
             SetString(node, "mode", "cubic");
             SetString(node, "padding_mode", "reflection");
             SetInt(node, "align_corners", 1);
           }},
          {"AffineGrid",
           [](OnnxModel& m) {
             m.Zeros("t", {1, 2, 3}).Ints("c0", {1, 1, 2, 3});
             m.Node("AffineGrid", {"t", "c0"}, {"y"});
           }},
          {"GroupNormalization",
           [](OnnxModel& m) {
             m.Zeros("s", {2}).Zeros("b", {2});
             onnx::NodeProto& node = AddOp(m, "GroupNormalization", {"s", "b"});
             SetInt(node, "num_groups", 2);
             SetFloat(node, "epsilon", 1e-5F);
           }},
          {"LayerNormalization",
           [](OnnxModel& m) {
             m.Zeros("s", {4});
             onnx::NodeProto& node = AddOp(m, "LayerNormalization", {"s"});
             SetInt(node, "axis", -1);
             SetFloat(node, "epsilon", 1e-5F);
           }},
          {"Stft",
           [](OnnxModel& m) {
             m.Input("s", {"1", "16", "1"}).Ints("c0", {2}).Ints("c1", {4});
             SetInt(m.Node("STFT", {"s", "c0", "", "c1"}, {"y"}), "onesided", 1);
           }},
          {"Dft",
           [](OnnxModel& m) {
             m.Input("s", {"1", "16", "2"}).Ints("c0", {8}).Ints("c1", {1});
             SetInt(m.Node("DFT", {"s", "c0", "c1"}, {"y"}), "inverse", 1);
           }},
          {"Window", [](OnnxModel& m) { m.Ints("c0", {8}).Node("HannWindow", {"c0"}, {"y"}); }},
          {"Integers",
           [](OnnxModel& m) {
             m.Ints("c0", {7, -7}).Ints("c1", {2, 3});
             m.Node("Div", {"c0", "c1"}, {"a"});
             m.Node("Mod", {"c0", "c1"}, {"b"});
             m.Node("Pow", {"c0", "c1"}, {"c"});
             m.Node("Sum", {"a", "b", "c"}, {"y"});
           }},
          {"Lstm",
           [](OnnxModel& m) {
             m.Input("s", {"3", "1", "2"}).Zeros("w", {1, 8, 2}).Zeros("r", {1, 8, 2});
             onnx::NodeProto& node = m.Node("LSTM", {"s", "w", "r"}, {"y"});
             SetInt(node, "hidden_size", 2);
             SetInt(node, "layout", 0);
             SetFloat(node, "clip", 1);
             SetString(node, "direction", "forward");
           }},
          {"Attention",
           [](OnnxModel& m) {
             m.Input("q", {"1", "3", "8"});
             onnx::NodeProto& node = m.Node("Attention", {"q", "q", "q"}, {"y"});
             SetInt(node, "q_num_heads", 4);
             SetInt(node, "kv_num_heads", 4);
             SetInt(node, "is_causal", 1);
             SetInt(node, "left_window_size", 2);
             SetInt(node, "qk_matmul_output_mode", 0);
             SetFloat(node, "scale", 0.5F);
             SetFloat(node, "softcap", 1);
           },
           25},
          {"RotaryEmbedding",
           [](OnnxModel& m) {
             m.Zeros("t", {1, 4, 1});
             onnx::NodeProto& node = AddOp(m, "RotaryEmbedding", {"t", "t"});
             SetInt(node, "rotary_embedding_dim", 2);
             SetInt(node, "interleaved", 1);
             SetInt(node, "num_heads", 4);
           },
           23},
          {"DequantizeLinear",
           [](OnnxModel& m) {
             m.Input("q", {"2", "8"}, TensorProto::INT8).Input("s", {"2", "2"});
             onnx::NodeProto& node = m.Node("DequantizeLinear", {"q", "s"}, {"y"});
             SetInt(node, "axis", 1);
             SetInt(node, "block_size", 4);
           },
           21}};
}

int64_t AnyInt(Random& random) {
  static const int64_t kValues[] = {kLeast,
                                    kLeast + 1,
                                    -kBlock,
                                    -9,
                                    -3,
                                    -2,
                                    -1,
                                    0,
                                    1,
                                    2,
                                    3,
                                    5,
                                    64,
                                    1 << 20,
                                    int64_t{1} << 31,
                                    kBlock,
                                    int64_t{1} << 40,
                                    int64_t{1} << 62,
                                    kMost};
  return kValues[random.Below(std::size(kValues))];
}

float AnyFloat(Random& random) {
  using Limits = std::numeric_limits<float>;
  static const float kValues[] = {Limits::quiet_NaN(),
                                  Limits::infinity(),
                                  -Limits::infinity(),
                                  Limits::max(),
                                  Limits::denorm_min(),
                                  0,
                                  -1,
                                  1e9F};
  return kValues[random.Below(std::size(kValues))];
}

void ChangeAttribute(AttributeProto& attribute, Random& random) {
  switch (attribute.type()) {
    case AttributeProto::INT: return attribute.set_i(AnyInt(random));
    case AttributeProto::FLOAT: return attribute.set_f(AnyFloat(random));
    case AttributeProto::STRING: return attribute.set_s(random.Chance(0.5) ? "odd" : "");
    case AttributeProto::INTS:
      if (random.Chance(0.1)) return attribute.clear_ints();
      if (random.Chance(0.1) || attribute.ints_size() == 0)
        return attribute.add_ints(AnyInt(random));
      return attribute.set_ints(
          static_cast<int>(random.Below(static_cast<uint64_t>(attribute.ints_size()))),
          AnyInt(random));
    default: return;
  }
}

/// One to three attributes, elements of a constant, or extents of an input.
void Change(OnnxModel& model, Random& random) {
  std::vector<std::function<void()>> places;
  for (onnx::NodeProto& node : *model.graph().mutable_node()) {
    for (AttributeProto& attribute : *node.mutable_attribute())
      places.emplace_back([&] { ChangeAttribute(attribute, random); });
  }
  for (TensorProto& tensor : *model.graph().mutable_initializer()) {
    for (int i = 0; i < tensor.int64_data_size(); ++i)
      places.emplace_back([&, i] { tensor.set_int64_data(i, AnyInt(random)); });
  }
  for (onnx::ValueInfoProto& input : *model.graph().mutable_input()) {
    auto& shape = *input.mutable_type()->mutable_tensor_type()->mutable_shape();
    for (int i = 0; i < shape.dim_size(); ++i)
      places.emplace_back([&, i] { shape.mutable_dim(i)->set_dim_value(AnyInt(random)); });
  }
  const int64_t edits = random.Between(1, 3);
  for (int64_t i = 0; i < edits && !places.empty(); ++i) places[random.Below(places.size())]();
}

/// What compiling does first: every node as Stages.
void ExpressNodes(const Graph& graph) {
  for (const Node& node : graph.nodes) {
    const OpCall call = MakeCall(graph, node);
    const OpDefinition* definition = FindOp(node.op);
    if (definition->express == nullptr) continue;
    ir::WorkloadBuilder builder;
    std::vector<int> tensors;
    for (const OpInput& input : call.inputs)
      tensors.push_back(input.present ? builder.AddConstant(input.type.dtype, input.type.shape)
                                      : -1);
    (void)definition->express(call, builder, tensors);
  }
}

const auto kNameOf = [](const auto& each) { return each.param.name; };

class AttributeFuzzTest : public ::testing::TestWithParam<Start> {};

TEST_P(AttributeFuzzTest, OddValuesNeverCrash) {
  const char* text = std::getenv("HONE_FUZZ_SEED");
  const uint64_t seed = text == nullptr ? 20240601 : std::strtoull(text, nullptr, 10);
  OnnxModel whole(GetParam().opset);
  whole.Input("x", {"1", "4", "4", "4"}).Output("y");
  whole.graph().mutable_output(0)->clear_type();
  GetParam().add(whole);
  ASSERT_EQ(whole.Error(), "ok");
  Random random(seed);
  int refused = 0;
  constexpr int kRuns = 150;
  for (int run = 0; run < kRuns; ++run) {
    OnnxModel model = whole;
    Change(model, random);
    SCOPED_TRACE(model.model.ShortDebugString());
    const auto graph = model.Import();
    refused += graph.ok() ? 0 : 1;
    if (graph.ok()) ExpressNodes(*graph);
  }
  std::printf("%s: seed %llu, %d of %d refused\n", GetParam().name.c_str(),
              static_cast<unsigned long long>(seed), refused, kRuns);
  EXPECT_GT(refused, 0);
}

INSTANTIATE_TEST_SUITE_P(Windows, AttributeFuzzTest, ::testing::ValuesIn(WindowStarts()), kNameOf);
INSTANTIATE_TEST_SUITE_P(Shapes, AttributeFuzzTest, ::testing::ValuesIn(ShapeStarts()), kNameOf);
INSTANTIATE_TEST_SUITE_P(Others, AttributeFuzzTest, ::testing::ValuesIn(OtherStarts()), kNameOf);

}  // namespace
}  // namespace hone::graph
