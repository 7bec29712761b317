#include "graph/value_range.h"

#include "gtest/gtest.h"

#include "tests/graph/onnx_model.h"

namespace hone::graph {
namespace {

using onnx::TensorProto;

const ir::ValueRange& RangeNamed(const Graph& graph, const std::string& name) {
  for (const Value& value : graph.values) {
    if (value.name == name) return value.range;
  }
  ADD_FAILURE() << "no value " << name;
  return graph.values[0].range;
}

TEST(ValueRangeTest, InputsStateTheirsInDocStrings) {
  OnnxModel model;
  model.Input("ids", {"4"}, TensorProto::INT64)
      .Input("mask", {"4"}, TensorProto::INT64)
      .Output("y", TensorProto::INT64);
  model.graph().mutable_input(0)->set_doc_string("low=0,high=30522");
  model.graph().mutable_input(1)->set_doc_string("ones=3");
  model.Node("Add", {"ids", "mask"}, {"y"});
  const auto graph = model.Import();
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_EQ(RangeNamed(*graph, "ids"), (ir::ValueRange{0, 30522}));
  EXPECT_EQ(RangeNamed(*graph, "mask"), (ir::ValueRange{0, 2}));
  EXPECT_EQ(RangeNamed(*graph, "y"), (ir::ValueRange{0, 30523}));
}

TEST(ValueRangeTest, IndicesGetTheExtentOfWhatTheyIndex) {
  OnnxModel model;
  model.Input("ids", {"4"}, TensorProto::INT32).Zeros("table", {17, 3}).Output("y");
  model.Node("Cast", {"ids"}, {"wide"}).add_attribute()->set_name("to");
  model.graph().mutable_node(0)->mutable_attribute(0)->set_type(onnx::AttributeProto::INT);
  model.graph().mutable_node(0)->mutable_attribute(0)->set_i(TensorProto::INT64);
  model.Node("Gather", {"table", "wide"}, {"y"});
  const auto graph = model.Import();
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_EQ(RangeNamed(*graph, "ids"), (ir::ValueRange{0, 17}));
  EXPECT_EQ(RangeNamed(*graph, "wide"), (ir::ValueRange{0, 17}));
}

TEST(ValueRangeTest, VariancesStayPositiveAndMasksSmall) {
  OnnxModel model;
  model.Input("x", {"2", "8"}).Output("deviation").Output("masked");
  model.Node("Mul", {"x", "x"}, {"square"});
  SetInts(model.Node("ReduceMean", {"square"}, {"variance"}), "axes", {1});
  model.model.mutable_opset_import(0)->set_version(13);
  model.Node("Sqrt", {"variance"}, {"deviation"});
  SetFloat(model.Node("Constant", {}, {"low"}), "value_float", -3e38F);
  model.Node("Mul", {"square", "low"}, {"masked"});
  const auto graph = model.Import();
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_GE(RangeNamed(*graph, "variance").low, 0);
  EXPECT_GE(RangeNamed(*graph, "deviation").low, 0);
  EXPECT_EQ(RangeNamed(*graph, "masked"), (ir::ValueRange{-1, 0}));
}

}  // namespace
}  // namespace hone::graph
