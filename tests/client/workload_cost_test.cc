#include "client/workload_cost.h"

#include "gtest/gtest.h"

#include "client/roofline.h"
#include "client/sample_statistics.h"
#include "ir/text.h"

namespace hone::client {
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

TEST(RooflineTest, BoundIsTheLargerOfArithmeticAndTraffic) {
  ir::Target target;
  target.threads = 2;
  target.l2_bytes = 1000;
  target.l3_bytes = 10'000;
  const Roofline roofline = {1e9, 4e9, 2e9, 1e9};
  EXPECT_EQ(roofline.BoundNs({.flop = 100, .bytes = 4}, target), 100);
  EXPECT_EQ(roofline.BoundNs({.flop = 1, .bytes = 2000}, target), 500);
  EXPECT_EQ(roofline.BoundNs({.flop = 1, .bytes = 8000}, target), 4000);
  EXPECT_EQ(roofline.BoundNs({.flop = 1, .bytes = 20'000}, target), 20'000);
}

TEST(RooflineTest, MeasuresPlausibleNumbers) {
  ir::Target target;
  std::string why;
  ASSERT_TRUE(ir::ParseTarget("cpu:avx2,threads=1", &target, &why)) << why;
  const auto roofline = MeasureRoofline(target, SystemMonotonicClock());
  ASSERT_TRUE(roofline.ok()) << roofline.status();
  // Any AVX2 machine, sanitizers included.
  EXPECT_GT(roofline->flop_per_second, 1e9);
  EXPECT_LT(roofline->flop_per_second, 1e12);
  for (const double rate : {roofline->l2_bytes_per_second, roofline->l3_bytes_per_second,
                            roofline->memory_bytes_per_second}) {
    EXPECT_GT(rate, 1e8);
    EXPECT_LT(rate, 1e13);
  }
}

TEST(SampleStatisticsTest, InterpolatesQuantiles) {
  const SampleStatistics s = Summarise({4, 1, 3, 2});
  EXPECT_EQ(s.min, 1);
  EXPECT_EQ(s.median, 2.5);
  EXPECT_DOUBLE_EQ(s.p10, 1.3);
  EXPECT_DOUBLE_EQ(s.p90, 3.7);
  EXPECT_EQ(Summarise({7}).p90, 7);
}

}  // namespace
}  // namespace hone::client
