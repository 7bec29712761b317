#include "compiler/workload_cost.h"

#include "gtest/gtest.h"

#include "ir/text.h"

namespace hone::compiler {
namespace {

WorkloadCost CostOfText(const std::string& text) {
  const auto workload = ir::ParseWorkload(text);
  EXPECT_TRUE(workload.ok()) << workload.status();
  return CostOf(*workload);
}

TEST(WorkloadCostTest, AMultiplyAddIsTwo) {
  const WorkloadCost cost = CostOfText(
      "workload 1\n"
      "x0: f32[8,16] input range(-1,1)\n"
      "x1: f32[16,4] constant\n"
      "s0: f32[8,4] = sum[r0:16] (x0[i0, r0] * x1[r0, i1])\n"
      "s1: f32[8,4] output = max(s0[i0, i1], 0.0)\n");
  EXPECT_EQ(cost.flop, 2 * 8 * 4 * 16 + 8 * 4);
  EXPECT_EQ(cost.bytes, 4 * (8 * 16 + 16 * 4 + 8 * 4));
}

TEST(WorkloadCostTest, IndicesAndGuardsAreFree) {
  const WorkloadCost cost = CostOfText(
      "workload 1\n"
      "x0: f32[8] input range(-1,1)\n"
      "s0: f32[10] output = select(i0 >= 1 & i0 < 9, exp(x0[i0 - 1]), 0.0)\n");
  EXPECT_EQ(cost.flop, 10);
  EXPECT_EQ(cost.bytes, 4 * (8 + 10));
}

TEST(WorkloadCostTest, OfAGatheredTableOnlyTheRowsThatAreRead) {
  const WorkloadCost cost = CostOfText(
      "workload 1\n"
      "x0: f32[1000,8] constant\n"
      "x1: i64[5] input range(0,999)\n"
      "s0: f32[5,8] output = x0[x1[i0], i1]\n");
  EXPECT_EQ(cost.bytes, 4 * 5 * 8 + 8 * 5 + 4 * 5 * 8);
}

}  // namespace
}  // namespace hone::compiler
