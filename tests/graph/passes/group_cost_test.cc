#include "graph/group_cost.h"

#include "gtest/gtest.h"

#include "graph/group_workload.h"
#include "tests/graph/passes/test_graph.h"

namespace hone::graph {
namespace {

using testing::TestGraph;

GroupCost CostOfAll(const Graph& graph) {
  Group group;
  for (size_t n = 0; n < graph.nodes.size(); ++n) group.nodes.push_back(static_cast<NodeId>(n));
  return CostOf(BuildWorkload(graph, group)->workload);
}

TEST(GroupCostTest, CountsMultiplyAddsOfContractions) {
  TestGraph t;
  t.Output(t.Relu(t.Linear(t.Input({3, 5}), 7)), "y");
  const GroupCost cost = CostOfAll(t.graph);
  EXPECT_EQ(cost.flops, 2 * 3 * 5 * 7);
  EXPECT_EQ(cost.other_flops, 2 * 3 * 7) << "bias and relu";
  EXPECT_EQ(cost.input_bytes, 4 * 3 * 5);
  EXPECT_EQ(cost.constant_bytes, 4 * (5 * 7 + 7));
  EXPECT_EQ(cost.output_bytes, 4 * 3 * 7);
}

TEST(GroupCostTest, CountsPaddedTapsOfConvolutions) {
  TestGraph t;
  t.Output(t.Conv(t.Input({1, 3, 8, 8}), 4, 3, 1, 1), "y");
  EXPECT_EQ(CostOfAll(t.graph).flops, 2 * 8 * 8 * 4 * 3 * 3 * 3);
}

TEST(GroupCostTest, SumsOfSquaresAreNoContraction) {
  TestGraph t;
  t.Output(t.LayerNorm(t.Input({2, 8})), "y");
  EXPECT_EQ(CostOfAll(t.graph).flops, 0);
  EXPECT_GT(CostOfAll(t.graph).other_flops, 2 * 8 * 5);
}

}  // namespace
}  // namespace hone::graph
