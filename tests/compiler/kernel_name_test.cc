#include "compiler/kernel_name.h"

#include "gtest/gtest.h"

#include "base/status.h"

namespace hone::compiler {
namespace {

using graph::Graph;
using graph::Node;

/// A value of f32.
graph::ValueId Add(Graph& graph, std::vector<int64_t> shape) {
  graph::Value value;
  value.type = {ir::DType::kF32, std::move(shape)};
  return graph.AddValue(std::move(value));
}

TEST(KernelName, TellsOperatorsAndShape) {
  Graph graph;
  const auto x = Add(graph, {1, 8, 8, 4}), w = Add(graph, {4, 1, 3, 3});
  const auto y = Add(graph, {1, 4, 4, 4}), r = Add(graph, {1, 4, 4, 4});
  const auto zero = graph.AddConstant(graph::MakeConstant(ir::DType::kF32, {}, {0}));
  const auto six = graph.AddConstant(graph::MakeConstant(ir::DType::kF32, {}, {6}));
  Node conv = {.op = "Conv",
               .attributes = {{"group", int64_t{4}}, {"strides", std::vector<int64_t>{2, 2}}},
               .inputs = {x, w},
               .outputs = {y}};
  graph.nodes.push_back(conv);
  graph.nodes.push_back({.op = "Binary",
                         .attributes = {{"fn", std::string("max")}},
                         .inputs = {y, zero},
                         .outputs = {r}});
  graph::Group group = {.nodes = {0, 1}, .anchor = 0};
  EXPECT_EQ(KernelName(graph, group), "depthwise conv 3x3/2 + relu 1x4x4x4");
  graph.nodes[1].inputs[1] = six;
  graph.nodes[0].attributes["group"] = int64_t{1};
  graph.nodes[0].attributes["strides"] = std::vector<int64_t>{2, 1};
  EXPECT_EQ(KernelName(graph, group), "conv 3x3/2x1 + max 1x4x4x4");
}

TEST(KernelName, OfManyOperatorsTellsTheAnchor) {
  Graph graph;
  const auto x = Add(graph, {});
  for (int i = 0; i < 8; ++i) {
    graph.nodes.push_back(
        {.op = "Unary", .attributes = {{"fn", std::string("exp")}}, .inputs = {x}, .outputs = {x}});
  }
  graph.nodes[5] = {
      .op = "Reduce", .attributes = {{"fn", std::string("sum")}}, .inputs = {x}, .outputs = {x}};
  graph::Group group = {.nodes = {0, 1, 2, 3, 4, 5, 6, 7}, .anchor = 5};
  EXPECT_EQ(KernelName(graph, group), "reduce sum with 7 more");
}

}  // namespace
}  // namespace hone::compiler
