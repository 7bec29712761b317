#include <cmath>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "tests/graph/onnx_model.h"

// Tensors without elements at the import: what follows from nothing, and what is refused.
namespace hone::graph {
namespace {

using onnx::TensorProto;
using ::testing::HasSubstr;

TEST(EmptyTensorTest, AScatterOfNothingIsACopy) {
  for (const auto& [op, indices] :
       {std::pair<std::string, std::vector<std::string>>{"ScatterND", {"0", "1"}},
        {"ScatterElements", {"0", "3"}}}) {
    OnnxModel model;
    model.Input("x", {"2", "3"}).Input("i", indices, TensorProto::INT64).Input("u", {"0", "3"});
    model.Output("y").Node(op, {"x", "i", "u"}, {"y"});
    const auto graph = model.Import();
    ASSERT_TRUE(graph.ok()) << graph.status();
    EXPECT_EQ(graph->values[static_cast<size_t>(graph->outputs[0])].type.shape,
              (std::vector<int64_t>{2, 3}));
  }
}

/// The one output of a model of one node, with these inputs; "shape" decides what they are.
Graph WithoutElements(const std::string& op, const std::vector<std::vector<std::string>>& shapes,
                      const std::function<void(OnnxModel&, onnx::NodeProto&)>& change) {
  OnnxModel model;
  std::vector<std::string> names;
  for (size_t i = 0; i < shapes.size(); ++i) {
    names.push_back("x" + std::to_string(i));
    model.Input(names.back(), shapes[i]);
  }
  change(model, model.Output("y").Node(op, names, {"y"}));
  auto graph = model.Import();
  EXPECT_TRUE(graph.ok()) << op << ": " << graph.status();
  return graph.ok() ? *std::move(graph) : Graph();
}

// As ONNX Runtime has them.
TEST(EmptyTensorTest, TensorsWithoutElementsGiveWhatFollowsFromNothing) {
  using Shape = std::vector<int64_t>;
  const auto output = [](const Graph& graph) -> const Value& {
    return graph.values[static_cast<size_t>(graph.outputs.at(0))];
  };
  Graph made = WithoutElements("Concat", {{"0", "3"}, {"0", "4"}},
                               [](auto&, auto& node) { SetInt(node, "axis", 1); });
  EXPECT_EQ(output(made).type.shape, (Shape{0, 7}));
  made = WithoutElements("Pad", {{"2", "0"}}, [](auto& model, auto& node) {
    model.Ints("pads", {1, 1, 0, 1});
    node.add_input("pads");
  });
  EXPECT_EQ(output(made).type.shape, (Shape{3, 2}));
  EXPECT_EQ(output(made).constant->AsDoubles(), std::vector<double>(6, 0));
  made = WithoutElements("ReduceMean", {{"0", "3"}}, [](auto& model, auto& node) {
    model.Ints("axes", {0});
    node.add_input("axes");
    SetInt(node, "keepdims", 0);
  });
  ASSERT_EQ(output(made).type.shape, (Shape{3}));
  EXPECT_TRUE(std::isnan(output(made).constant->DoubleAt(0)));
  made = WithoutElements("Einsum", {{"2", "0"}, {"0", "4"}},
                         [](auto&, auto& node) { SetString(node, "equation", "ij,jk->ik"); });
  EXPECT_EQ(output(made).constant->AsDoubles(), std::vector<double>(8, 0));
}

TEST(EmptyTensorTest, WhatHasNoElementsAndNoMeaningIsRefusedByName) {
  OnnxModel model;
  model.Input("x", {"0", "1", "3"}).Zeros("w", {1, 8, 3}).Zeros("r", {1, 8, 2}).Output("y");
  SetInt(model.Node("LSTM", {"x", "w", "r"}, {"y"}), "hidden_size", 2);
  EXPECT_THAT(model.Error(), HasSubstr("node y (LSTM) of f32[0,1,3], f32[1,8,3], f32[1,8,2]: an "
                                       "input without elements is not supported here"));
}

TEST(EmptyTensorTest, AnInputWithoutElementsIsAnInputAndNothingIsReadOfIt) {
  OnnxModel model;
  model.Input("x", {"2", "3"}).Input("none", {"2", "0"}).Output("y");
  SetInt(model.Node("Concat", {"none", "x"}, {"y"}), "axis", 1);
  const auto graph = model.Import();
  ASSERT_TRUE(graph.ok()) << graph.status();
  ASSERT_EQ(graph->inputs.size(), 2U);
  const Value& none = graph->values[static_cast<size_t>(graph->inputs[1])];
  EXPECT_EQ(none.name, "none");
  EXPECT_EQ(none.type.shape, (std::vector<int64_t>{2, 0}));
  EXPECT_EQ(none.constant, nullptr);
  EXPECT_EQ(graph->values[static_cast<size_t>(graph->outputs[0])].type.shape,
            (std::vector<int64_t>{2, 3}));
}

}  // namespace
}  // namespace hone::graph
