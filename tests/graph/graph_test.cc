#include "graph/graph.h"

#include "gtest/gtest.h"

#include "graph/op.h"

namespace hone::graph {
namespace {

TEST(GraphTest, TextShowsTypesAttributesAndSmallConstants) {
  Graph graph;
  graph.name = "two";
  graph.inputs = {graph.AddValue({.name = "x", .type = {ir::DType::kF32, {2, 3}}})};
  const ValueId scale = graph.AddConstant(MakeConstant(ir::DType::kF32, {1}, {0.5}));
  const auto product = AppendNode(graph, {.op = "Binary",
                                          .origin = "m",
                                          .attributes = {{"fn", "mul"}},
                                          .inputs = {graph.inputs[0], scale}});
  ASSERT_TRUE(product.ok()) << product.status();
  const auto moved = AppendNode(graph, {.op = "Transpose",
                                        .origin = "t",
                                        .attributes = {{"perm", std::vector<int64_t>{1, 0}}},
                                        .inputs = *product});
  ASSERT_TRUE(moved.ok()) << moved.status();
  graph.outputs = *moved;
  EXPECT_EQ(ToText(graph),
            "graph two\n"
            "%0:f32[2,3] = input x\n"
            "%1:f32[1] = constant {0.5}\n"
            "%2:f32[2,3] = Binary(%0, %1) {fn=mul}\n"
            "%3:f32[3,2] = Transpose(%2) {perm=[1,0]}\n"
            "output %3 t\n");
}

TEST(GraphTest, ErrorsNameNodeOperatorAndShapes) {
  Graph graph;
  const ValueId a = graph.AddValue({.name = "a", .type = {ir::DType::kF32, {2, 3}}});
  const ValueId b = graph.AddValue({.name = "b", .type = {ir::DType::kF32, {4, 5}}});
  const auto product = AppendNode(graph, {.op = "MatMul", .origin = "fc1", .inputs = {a, b}});
  EXPECT_EQ(product.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(std::string(product.status().message()),
            "node fc1 (MatMul) of f32[2,3], f32[4,5]: inner extents 3 and 4 differ");
}

TEST(GraphTest, ConstantsKeepIntegersBeyondDoubles) {
  const int64_t large = (int64_t{1} << 53) + 1;
  EXPECT_EQ(MakeInt64s({2}, {large, -large})->AsInt64s(), (std::vector<int64_t>{large, -large}));
  EXPECT_EQ(MakeConstant(ir::DType::kF16, {2}, {0.1, -70000})->AsDoubles(),
            (std::vector<double>{0.0999755859375, -std::numeric_limits<double>::infinity()}));
}

TEST(GraphTest, ReadersListsEachNodeOnce) {
  Graph graph;
  const ValueId x = graph.AddValue({.name = "x", .type = {ir::DType::kF32, {2}}});
  ASSERT_TRUE(
      AppendNode(graph,
                 {.op = "Binary", .origin = "n", .attributes = {{"fn", "add"}}, .inputs = {x, x}})
          .ok());
  EXPECT_EQ(graph.Readers()[0], std::vector<NodeId>{0});
}

}  // namespace
}  // namespace hone::graph
